package find

import (
	"context"

	"divan/cluster"
	"divan/shard/query/plan"
	"divan/shard/view"
)

// Indexes are the indexes of a database.
type Indexes struct {
	List        []*plan.Index // in the order of their design documents
	definitions map[string]*view.Definition
}

// Indexes returns the indexes of a database.
func (f *Finder) Indexes(ctx context.Context, db *cluster.DB) (*Indexes, error) {
	docs, err := f.o.Designs.All(ctx, db)
	if err != nil {
		return nil, err
	}
	partitioned := db.Meta().Partitioned
	out := &Indexes{}
	for _, d := range docs {
		list := d.Indexes(partitioned)
		if len(list) == 0 {
			continue
		}
		if def, err := d.Definition(partitioned); err == nil && def != nil {
			if out.definitions == nil {
				out.definitions = map[string]*view.Definition{}
			}
			out.List, out.definitions[d.ID] = append(out.List, list...), def
		}
	}
	return out, nil
}
