package find

import (
	"context"

	"divan/cluster"
	"divan/shard/query/plan"
)

// Indexes returns the indexes of a database, in the order of their design documents.
func (f *Finder) Indexes(ctx context.Context, db *cluster.DB) ([]*plan.Index, error) {
	rows, err := db.AllDocs(ctx, cluster.DocsQuery{Namespace: cluster.DesignDocs, Limit: cluster.NoLimit, IncludeDocs: true})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*plan.Index
	for rows.Next() {
		r := rows.Row()
		out = append(out, plan.IndexesOf(r.ID, r.Doc.Body, db.Meta().Partitioned)...)
	}
	return out, rows.Err()
}
