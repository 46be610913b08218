package search

import (
	"divan/shard/search/postings"
)

// hitParts read what is added to the hits that are kept: stored fields, and marks in them.
type hitParts struct {
	stored storedFields
	marks  highlighter
}

// storedFields reads the stored fields that a request asks for.
type storedFields struct {
	scan *scan
	all  bool                // of a document
	some map[string]struct{} // if not
}

// newStoredFields returns what reads the fields of Request.IncludeFields.
func newStoredFields(s *scan, names []string) storedFields {
	some := make(map[string]struct{}, len(names))
	for _, name := range names {
		some[name] = struct{}{}
	}
	return storedFields{s, names == nil, some}
}

// isIncluded reports whether a stored field comes with hits.
func (f *storedFields) isIncluded(name []byte) bool {
	_, ok := f.some[string(name)]
	return ok || f.all
}

// read returns the stored fields of a document.
func (f *storedFields) read(n postings.Number) ([]postings.Stored, error) {
	if err := f.scan.ctx.Err(); err != nil {
		return nil, err
	}
	if !f.all && len(f.some) == 0 {
		return nil, nil
	}
	fields, err := f.scan.r.Stored(n, f.isIncluded)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range fields {
		bytes += storedBytes + len(fields[i].Name) + len(fields[i].Value)
	}
	return fields, f.scan.space.Take(bytes)
}
