package search

import (
	clustersearch "divan/cluster/search"
	"divan/httpapi/core"
)

// Family is the endpoints of full-text search.
type Family struct {
	searcher *clustersearch.Searcher
	patterns *patterns
	search   map[string]form
	nouveau  map[string]form
}

// New returns the family.
func New(a *core.API) (*Family, error) {
	s, err := clustersearch.New(clustersearch.Options{Config: a.Deps.Config, Logger: a.Deps.Logger})
	if err != nil {
		return nil, err
	}
	return &Family{searcher: s, patterns: newPatterns(), search: searchForms(), nouveau: nouveauForms()}, nil
}
