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
	rows, err := db.AllDocs(ctx, cluster.DocsQuery{Namespace: cluster.DesignDocs, Limit: cluster.NoLimit, IncludeDocs: true})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := &Indexes{definitions: map[string]*view.Definition{}}
	for rows.Next() {
		r := rows.Row()
		list := plan.IndexesOf(r.ID, r.Doc.Body, db.Meta().Partitioned)
		if len(list) == 0 {
			continue
		}
		if def, err := view.Parse(r.Doc.Body, db.Meta().Partitioned); err == nil && def != nil {
			def.Design = r.ID
			out.List, out.definitions[r.ID] = append(out.List, list...), def
		}
	}
	return out, rows.Err()
}
