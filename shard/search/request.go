package search

import (
	"time"

	"divan/shard/search/postings"
)

// Request asks an index of a copy.
type Request struct {
	Copy       string
	Signature  string // Definition.Signature
	Definition []byte // Definition.Text, from which the index is built when this node does not know it
	Design     string // a design document that has the index, for _active_tasks
	Label      string // what that calls it, likewise
	Stale      bool   // answers from the index as it is; otherwise it is brought up to date first

	Query     string // in the dialect of the definition
	Partition string // only documents of this partition; empty: all
	Locale    string // of the numbers in a query of _nouveau; empty: English
	Drilldown []Drilldown

	Limit int       // hits at most; with Group: of each group
	Sort  []Sort    // empty: by score, the best first; ties are in the order of ids
	After *Position // hits behind this one only; nil: all

	Counts []string      // fields whose values are counted
	Ranges []FieldRanges // numbers that are counted
	Group  *Group        // hits are in groups; nil: they are not

	IncludeFields []string // stored fields that come with hits; nil: all
	Highlight     *Highlight
}

// SortBy says what hits are ordered by.
type SortBy uint8

// What hits may be ordered by. Their numbers travel between nodes.
const (
	ByScore    SortBy = iota
	ByID              // the id of the document
	ByNumber          // the greatest number of a field; 0 where there is none
	ByString          // the greatest term of a field; documents without one come first
	ByDistance        // the distance of two fields from a place
	ByField           // of _nouveau: ByNumber or ByString, as the field is
)

// Sort is one part of an order.
type Sort struct {
	By         SortBy
	Field      string // of ByDistance: the longitude
	Descending bool

	// Of ByDistance:
	LatitudeField       string
	Longitude, Latitude float64 // in degrees
	Miles               bool    // the distance is in miles, not in kilometres
}

// Value is a value that a hit is ordered by.
type Value struct {
	Number  float64
	Text    string
	Kind    SortBy // of ByField: what the field is here; ByField itself where no document has it
	Missing bool   // of ByString: there is no term
}

// Position is a place among hits: the values of each part of the order, and the id.
type Position struct {
	Order []Value
	ID    string
}

// Drilldown keeps documents that have one of the values of a facet; any value if there is none.
type Drilldown struct {
	Field  string
	Values []string
}

// FieldRanges counts numbers of a field by ranges, which may overlap.
type FieldRanges struct {
	Field  string
	Ranges []NumberRange
}

// NumberRange is the numbers between two; open ends are infinite.
type NumberRange struct {
	Label                        string
	Lower, Upper                 float64
	IncludesLower, IncludesUpper bool
}

// Group says how hits are grouped. In the first pass, when Names is nil, the best groups are
// found, without hits; in the second the hits of the named ones.
type Group struct {
	Field string
	Sort  []Sort // of groups, by their best hit; empty: by score
	Limit int    // groups of the first pass
	Names []GroupName
}

// GroupName names a group: a term of the field, or what documents without one are in.
type GroupName struct {
	By      string
	Missing bool
}

// Highlight asks for the pieces of stored fields in which something was found.
type Highlight struct {
	Fields []string
	Before string // what is put in front of a word
	After  string
	Number int // pieces of a field at most
	Size   int // of a piece, in characters, about
}

// Hit is a document that matches.
type Hit struct {
	Position
	Fields     []postings.Stored // in the order in which the index function gave them
	Highlights []Highlighted     // of each of Highlight.Fields
}

// Highlighted holds the pieces found in a stored field, the best piece first.
type Highlighted struct {
	Field  string
	Pieces []string
}

// Answer is the result of a query.
type Answer struct {
	Total  uint64 // documents that match, regardless of Limit and After
	Hits   []Hit
	Counts []FieldCounts // of each of Request.Counts
	Ranges []RangeCounts // of each of Request.Ranges
	Groups []GroupHits
	Waited time.Duration // for the index to be brought up to date
}

// FieldCounts is how many of the documents that match have each value of a facet.
type FieldCounts struct {
	Known  bool    // some document of the index has the facet
	Values []Count // in the order of the values
}

// Count is a value and how many documents have it.
type Count struct {
	Value string
	Count uint64
}

// RangeCounts is how many of the documents that match are in each range of a FieldRanges.
type RangeCounts []uint64

// GroupHits is a group.
type GroupHits struct {
	GroupName
	Order []Value // of its best hit by Group.Sort
	Total uint64  // documents that match; of the second pass
	Hits  []Hit   // of the second pass
}
