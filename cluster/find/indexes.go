package find

import (
	"context"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/shard/query/plan"
	"divan/shard/view"
)

// Indexes are the indexes of a database.
type Indexes struct {
	List        []*plan.Index               // in the order of their design documents
	definitions map[string]*view.Definition // of the indexes of JSON
	designs     map[string]*designdocs.Document
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
		if out.designs == nil {
			out.definitions, out.designs = map[string]*view.Definition{}, map[string]*designdocs.Document{}
		}
		def, err := d.Definition(partitioned)
		if err == nil && def != nil {
			out.definitions[d.ID] = def
		}
		out.designs[d.ID] = d
		for _, x := range list {
			switch {
			case x.Kind == plan.JSON && out.definitions[d.ID] == nil:
				continue
			case x.Kind != plan.JSON:
				if _, err := out.definition(x, partitioned); err != nil {
					broken := *x
					broken.Broken, x = true, &broken
				}
			}
			out.List = append(out.List, x)
		}
	}
	return out, nil
}
