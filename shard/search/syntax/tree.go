package syntax

// DefaultField is the field of words that name none.
const DefaultField = "default"

// Dialect says whose language a text is in.
type Dialect uint8

// The dialects.
const (
	Search  Dialect = iota // of _search
	Nouveau                // of _nouveau
)

// Query is a node of the tree: one of the types below, by value, or *Boolean. Its
// String is the text that parses to the same node.
type Query interface {
	String() string
	write(p *printer)
}

// All matches every document.
type All struct{}

// Term is a bare word: what analysis makes of it, any of several tokens.
type Term struct{ Field, Text string }

// Number is a bare word that reads as a number; of Search only. It matches numeric
// fields, exactly.
type Number struct {
	Field string
	Value float64 // may be infinite or NaN
}

// Phrase is quoted text: its tokens in order, with Slop moves at most. Text may be
// empty, and then matches nothing.
type Phrase struct {
	Field, Text string
	Slop        int
}

// Prefix matches terms that begin with Text, which is not empty.
type Prefix struct{ Field, Text string }

// Wildcard matches whole terms: in Pattern * is any run of characters and ? any one
// character; a backslash stands before those and before a backslash that are meant
// literally, and before nothing else. The first character is never a wildcard.
type Wildcard struct{ Field, Pattern string }

// Fuzzy matches terms that Edits insertions, deletions, replacements or swaps of
// neighbours (0 to 2) make of Text.
type Fuzzy struct {
	Field, Text string
	Edits       int
}

// Regexp matches whole terms by a regular expression in Lucene's syntax. Pattern is
// the text between the slashes; it has not been checked.
type Regexp struct{ Field, Pattern string }

// Bound is one side of a Range. An open one has neither text nor inclusion.
type Bound struct {
	Text      string
	Open      bool
	Inclusive bool
}

// Range matches terms between its bounds; of Nouveau also numbers, when the field is
// numeric.
type Range struct {
	Field        string
	Lower, Upper Bound
}

// NumberRange matches numbers between its bounds; of Search only. An open side is an
// infinite bound.
type NumberRange struct {
	Field                        string
	Lower, Upper                 float64
	IncludesLower, IncludesUpper bool
}

// Boosted weighs what Query scores by Factor, which is not negative. Query is not
// Boosted itself.
type Boosted struct {
	Query  Query
	Factor float32
}

// Modifier is the sign before a clause.
type Modifier uint8

// The modifiers.
const (
	Plain   Modifier = iota
	Plus             // +
	Negated          // - ! NOT
)

// Clause is one part of a Boolean.
type Clause struct {
	And      bool // AND stands before it; never of the first
	Modifier Modifier
	Query    Query
}

// Boolean combines clauses, of which there is at least one. A single clause has a
// modifier, or Minimum is set.
type Boolean struct {
	Clauses []Clause
	Minimum int // how many of the clauses that may match have to, as (…)@2 says; of Nouveau only
}

// Occur says what a clause means for a document.
type Occur uint8

// What a clause may mean.
const (
	Should  Occur = iota // counts for the score; one has to match where no clause is a Must
	Must                 // has to match
	MustNot              // may not match; where all clauses are such, nothing matches
)

// Occurs returns what each clause means in that dialect. Gone says of which clauses
// analysis left nothing (stop words); what is returned for those means nothing.
// Nil: of none.
func (b *Boolean) Occurs(d Dialect, gone func(clause int) bool) []Occur {
	out := make([]Occur, len(b.Clauses))
	before := -1 // the clause that AND reaches back to
	for i, c := range b.Clauses {
		if c.And && before >= 0 && out[before] != MustNot {
			out[before] = Must
		}
		switch {
		case c.Modifier == Negated:
			out[i] = MustNot
		case c.And || c.Modifier == Plus:
			out[i] = Must
		}
		if d == Nouveau || gone == nil || !gone(i) {
			before = i
		}
	}
	return out
}
