package search

import (
	"divan/shard/search/postings"
)

// isIncluded reports whether a stored field comes with hits.
func (e *evaluation) isIncluded(name []byte) bool {
	_, ok := e.included[string(name)]
	return ok || e.req.IncludeFields == nil
}

// stored returns the stored fields of a document that the request asks for.
func (e *evaluation) stored(n postings.Number) ([]postings.Stored, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	if e.req.IncludeFields != nil && len(e.req.IncludeFields) == 0 {
		return nil, nil
	}
	fields, err := e.r.Stored(n, e.isIncluded)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range fields {
		bytes += storedBytes + len(fields[i].Name) + len(fields[i].Value)
	}
	return fields, e.room.Take(bytes)
}
