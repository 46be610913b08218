package search

import (
	"slices"

	"divan/shard/search/postings"
)

// stored returns the stored fields of a document that the request asks for.
func (e *evaluation) stored(n postings.Number) ([]postings.Stored, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	if e.req.IncludeFields != nil && len(e.req.IncludeFields) == 0 {
		return nil, nil
	}
	fields, err := e.r.Stored(n)
	if err != nil {
		return nil, err
	}
	if e.req.IncludeFields != nil {
		fields = slices.DeleteFunc(fields, func(f postings.Stored) bool {
			_, ok := e.included[f.Name]
			return !ok
		})
	}
	bytes := 0
	for i := range fields {
		bytes += storedBytes + len(fields[i].Name) + len(fields[i].Value)
	}
	return fields, e.room.take(bytes)
}
