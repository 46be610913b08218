package search

import (
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// Request asks an index of a copy.
type Request struct {
	Copy       string
	Definition *Definition
	Stale      bool // answers from the index as it is; otherwise it is brought up to date first

	Query   syntax.Query
	Dialect syntax.Dialect
	Limit   int       // hits at most
	Sort    []Sort    // empty: by score, the best first; ties are in the order of ids
	After   *Position // hits behind this one only; nil: all
}

// SortBy says what hits are ordered by.
type SortBy uint8

// What hits may be ordered by.
const (
	ByScore  SortBy = iota
	ByID            // the id of the document
	ByNumber        // the greatest number of a field; 0 where there is none
	ByString        // the greatest term of a field; documents without one come first
)

// Sort is one part of an order.
type Sort struct {
	By         SortBy
	Field      string
	Descending bool
}

// Value is what a hit is ordered by.
type Value struct {
	Number  float64
	Text    string
	Missing bool // of ByString: there is no term
}

// Position is a place among hits: the values of each part of the order, and the id.
type Position struct {
	Order []Value
	ID    string
}

// Hit is a document that matches.
type Hit struct {
	Position
	Fields []postings.Stored
}

// Answer is what a query finds.
type Answer struct {
	Total uint64 // documents that match, whatever Limit and After say
	Hits  []Hit
}
