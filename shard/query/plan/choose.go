package plan

import (
	"cmp"
	"slices"
	"strings"

	"divan/shard/query"
	"divan/shard/query/text"
)

// Plan is how a query is answered.
type Plan struct {
	Index    *Index
	Text     *TextPlan // of an index of full text; nil: it is another one
	Desc     bool
	Ranges   []Range // what is read, in ascending order; none: everything
	Nothing  bool    // no document can match: nothing is read
	Covering bool    // keys and ids are enough: no document is read
	Empty    bool    // the leading column has no value in any match: CouchDB tells nothing about such an answer
	After    *Bookmark
	Ignored  bool     // the index that the client named is another one
	Warnings []string // what the client is told, before those about the reading

	fingerprint uint64
}

// Bookmark returns the place behind a row.
func (p *Plan) Bookmark(sort []byte, id string) *Bookmark {
	return &Bookmark{Index: p.fingerprint, Sort: sort, ID: id}
}

// Database holds the properties of a database that the planner needs.
type Database struct {
	Name        string
	Partitioned bool
	TextLimits  [2]int // rows of an answer at most, from indexes of the types Text and Nouveau
}

// The reasons why an index is not used, as _explain names them.
const (
	excludedByUser  = "excluded_by_user"
	fieldMismatch   = "field_mismatch"
	isPartial       = "is_partial"
	needsTextSearch = "needs_text_search"
	scopeMismatch   = "scope_mismatch"
	sortMismatch    = "sort_order_mismatch"
	emptySelector   = "empty_selector"
	comesAfter      = "alphabetically_comes_after"
	lessOverlap     = "less_overlap"
	tooManyFields   = "too_many_fields"
	unfavoredType   = "unfavored_type"
)

// candidate is an index with what the planner thinks of it.
type candidate struct {
	*Index
	reasons []string // why it is not usable; none: it is
	prefix  int      // leading columns that the selector bounds
}

// chooser is a choice under way.
type chooser struct {
	find       *Find
	db         Database
	all        []*candidate // _all_docs first, then by design document and name
	indexable  []string     // fields that the selector bounds, as CouchDB sees it
	impossible string       // the first of them that has no value in any match; empty: none
	bounded    []string     // those by which indexes are compared, with columns that $in and $or bound
	shown      *text.Shown  // the selector as a query of full text; nil: no index is of such
	winner     *candidate   // nil: none
	choiceless error        // why there is none
}

// Choose returns how a query is answered. The error is a *fault.Error when it
// needs an index that is not there.
func Choose(f *Find, indexes []*Index, db Database) (*Plan, error) {
	if f.unreadable && !f.start {
		return nil, f.InvalidBookmark()
	}
	c, err := newChooser(f, indexes, db)
	if err != nil {
		return nil, err
	}
	switch {
	case f.unreadable && (c.winner == nil || c.winner.text == nil):
		return nil, f.InvalidBookmark()
	case c.winner == nil:
		return nil, c.choiceless
	}
	x := c.winner.Index
	if x.text != nil {
		return c.textPlan()
	}
	p := &Plan{
		Index: x, Desc: f.Descending(), After: f.Bookmark, Ignored: c.ignored(), Warnings: c.warnings(),
		Covering: x.covers(f), fingerprint: x.fingerprint(f.Descending()),
	}
	p.Ranges, p.Nothing = ranges(f, x)
	p.Nothing = p.Nothing || f.Selector.Nothing()
	p.Empty = f.Selector.Nothing() || c.emptyRange(x)
	return p, nil
}

func newChooser(f *Find, indexes []*Index, db Database) (*chooser, error) {
	c := &chooser{find: f, db: db, indexable: f.Selector.Indexable()}
	list := List(indexes)
	if err := c.show(list); err != nil {
		return nil, err
	}
	c.bounded = slices.Clone(c.indexable)
	for _, field := range c.indexable {
		if len(f.Selector.Intervals(field, false)) == 0 { // the others are of no interest to CouchDB then
			c.impossible, c.bounded = field, []string{field}
			break
		}
	}
	for _, x := range list {
		for _, name := range x.Names() {
			if c.impossible == "" && !slices.Contains(c.bounded, name) && !query.Full(x.intervals(f.Selector, name)) {
				c.bounded = append(c.bounded, name)
			}
		}
	}
	for _, x := range list {
		c.all = append(c.all, c.judge(x))
	}
	slices.SortStableFunc(c.all[1:], func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.Design, b.Design), cmp.Compare(a.Name, b.Name))
	})
	c.winner, c.choiceless = c.choose()
	return c, nil
}

// judge says whether an index can be used, and how much of the query it serves.
func (c *chooser) judge(x *Index) *candidate {
	out := &candidate{Index: x}
	sel := c.find.Selector
	add := func(is bool, reason string) {
		if is {
			out.reasons = append(out.reasons, reason)
		}
	}
	for out.prefix < len(x.Columns) && slices.Contains(c.bounded, x.Columns[out.prefix].Name) {
		out.prefix++
	}
	if !x.AllDocs() {
		add(x.partial != nil && !x.named(c.find.UseIndex), isPartial)
		add(x.Partitioned != (c.find.Partition != ""), scopeMismatch)
		if x.text != nil {
			add(sel.Empty(), emptySelector)
			add(!c.covered(x) || x.Broken && !x.named(c.find.UseIndex), fieldMismatch)
			return out
		}
		add(!sel.Requires(x.needed(c.find.Sort)), fieldMismatch)
	} else if !sel.Text() {
		add(out.prefix == 0, fieldMismatch)
	}
	add(sel.Text(), needsTextSearch)
	add(!x.sorts(c.find), sortMismatch)
	return out
}

// needed returns the columns that a document must have to be in the index, but
// for those that all results have, or that documents without are left out for.
func (x *Index) needed(sort []Column) []string {
	return slices.DeleteFunc(x.Names(), func(name string) bool {
		return name == "_id" || name == "_rev" || slices.ContainsFunc(sort, func(c Column) bool { return c.Name == name })
	})
}

// sorts reports whether rows come in the order that the query wants: its fields are
// the leading columns, behind those that an $eq makes the same in all results.
func (x *Index) sorts(f *Find) bool {
	columns := x.Names()
	if len(f.Sort) == 0 {
		return true
	}
	for len(columns) > 0 && columns[0] != f.Sort[0].Name && f.Selector.Constant(columns[0]) {
		columns = columns[1:]
	}
	return len(columns) >= len(f.Sort) && slices.EqualFunc(f.Sort, columns[:len(f.Sort)], func(c Column, name string) bool { return c.Name == name })
}

// emptyRange reports whether CouchDB finds that no value of the leading column is in
// a match.
func (c *chooser) emptyRange(x *Index) bool {
	return c.impossible != "" && len(x.Columns) > 0 && x.Columns[0].Name == c.impossible
}

// choose returns the candidate that serves the query.
func (c *chooser) choose() (*candidate, error) {
	var usable, wanted []*candidate
	for _, x := range c.all {
		if len(x.reasons) == 0 {
			usable = append(usable, x)
			if x.named(c.find.UseIndex) {
				wanted = append(wanted, x)
			}
		}
	}
	use := c.find.UseIndex
	if b := c.find.Bookmark; b != nil {
		return c.continued(usable, b)
	}
	switch {
	case len(wanted) > 0:
		usable = wanted
	case c.find.AllowFallback, len(use) == 0 && len(usable) > 0:
	case len(use) == 0:
		return nil, refusal("invalid_index", "You must specify an index with the `use_index` parameter.")
	default:
		return nil, refusal("invalid_index", useIndexText(use)+" specified by `use_index` could not be found or it is not suitable.")
	}
	if len(usable) == 0 {
		return c.fallback()
	}
	best := slices.MinFunc(usable, rank)
	if best.text != nil && slices.ContainsFunc(usable, func(x *candidate) bool { return x != best && x.Kind == best.Kind }) {
		return nil, refusal("multiple_"+best.Kind.String()+"_indexes", "You must specify an index with the `use_index` parameter.")
	}
	return best, nil
}

// fallback is the choice when no index is usable.
func (c *chooser) fallback() (*candidate, error) {
	switch {
	case c.find.Selector.Text(): // only an index of full text can judge $text; CouchDB finds every document
		return nil, query.NoTextIndex()
	case len(c.find.Sort) == 0:
		return c.all[0], nil
	case c.find.Partition != "":
		return nil, refusal("no_usable_index", "No partitioned index exists for this sort, try indexing by the sort fields.")
	case c.db.Partitioned:
		return nil, refusal("no_usable_index", "No global index exists for this sort, try indexing by the sort fields.")
	default:
		return nil, refusal("no_usable_index", "No index exists for this sort, try indexing by the sort fields.")
	}
}

// continued returns the index that a bookmark comes from.
func (c *chooser) continued(usable []*candidate, b *Bookmark) (*candidate, error) {
	desc := c.find.Descending()
	if docs := c.all[0]; docs.sorts(c.find) && !c.find.Selector.Text() {
		usable = append(usable, docs)
	}
	for _, x := range usable {
		if x.fingerprint(desc) == b.Index {
			return x, nil
		}
	}
	return nil, c.find.InvalidBookmark()
}

// rank orders usable candidates, the best first.
func rank(a, b *candidate) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(b.prefix, a.prefix),
		cmp.Compare(len(a.Columns), len(b.Columns)),
		cmp.Compare(a.Design, b.Design),
		cmp.Compare(a.Name, b.Name),
	)
}

func useIndexText(use []string) string {
	return strings.Join(append([]string{DesignID(use[0])}, use[1:]...), ", ")
}

// ignored reports whether the client wanted another index.
func (c *chooser) ignored() bool { return len(c.find.UseIndex) > 0 && !c.winner.named(c.find.UseIndex) }

// warnings tells what the client may not have expected.
func (c *chooser) warnings() []string {
	var out []string
	if use := c.find.UseIndex; c.ignored() {
		what := "it does not contain a valid index for this query."
		if len(use) == 2 {
			what = "it is not a valid index for this query."
		}
		out = append(out, useIndexText(use)+" was not used because "+what)
	}
	if c.winner.AllDocs() {
		out = append(out, "No matching index found, create an index to optimize query time.")
	}
	return out
}

// ScanWarning returns what the client is told when much was read for few results;
// empty: nothing. A threshold of 0 is none.
func ScanWarning(examined, results, threshold int64) string {
	if threshold <= 0 || examined <= threshold*max(results, 1) {
		return ""
	}
	return "The number of documents examined is high in proportion to the number of results returned. " +
		"Consider adding a more specific index to improve this."
}

// covers reports whether keys and ids of the index are all that the query needs.
func (x *Index) covers(f *Find) bool {
	if x.AllDocs() || f.Conflicts || f.R > 1 {
		return false
	}
	needs := f.Selector.Fields()
	if !f.Count {
		if len(f.names) == 0 {
			return false
		}
		needs = append(needs, f.names...)
	}
	columns := x.Names()
	for _, name := range needs {
		if name != "_id" && !slices.Contains(columns, name) {
			return false
		}
	}
	return !query.Nested(columns)
}
