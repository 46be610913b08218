package designdocs

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"divan/cluster/docformat"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/query/plan"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/shard/view"
	"divan/storage/doc"
)

// What documents and entries take besides their texts, in bytes.
const (
	documentBytes = 512
	entryBytes    = 512
	searchBytes   = 512 // of each full-text index
)

// Document is a design document. It never changes.
type Document struct {
	ID       string // with "_design/"
	Rev      doc.Rev
	Body     []byte // canonical JSON without underscore members
	Language string // of its functions

	validates bool
	functions func() *script.Design
	parse     [2]func() (*view.Definition, error) // for a database that is not partitioned, and one that is
	indexes   [2]func() []*plan.Index             // likewise
	searches  [2]func() []search.Named            // likewise
	count     int                                 // of searches, about
}

// newDocument makes a document of what was read of an instance of a database.
func newDocument(scripts *script.Engine, instance string, d *shard.Doc) *Document {
	out := &Document{ID: d.ID, Rev: d.Rev, Body: d.Body, Language: "javascript"}
	if language, ok := doc.Unquote(doc.Lookup(d.Body, "language")); ok {
		out.Language = language
	}
	source := doc.Lookup(d.Body, "validate_doc_update")
	out.validates = source != nil && string(source) != "null"
	out.functions = sync.OnceValue(func() *script.Design {
		return scripts.Design(instance, docformat.Style{}.Append(nil, d))
	})
	for i := range out.parse {
		out.parse[i] = sync.OnceValues(func() (*view.Definition, error) {
			def, err := view.Parse(out.Body, i == 1)
			if def != nil {
				def.Design = out.ID
			}
			return def, err
		})
		out.indexes[i] = sync.OnceValue(func() []*plan.Index { return plan.IndexesOf(out.ID, out.Body, i == 1) })
		out.searches[i] = sync.OnceValue(func() []search.Named { return out.parseSearches(i == 1) })
	}
	out.count = members(doc.Lookup(d.Body, "indexes")) + members(doc.Lookup(d.Body, "nouveau"))
	return out
}

// members is how many members a value has.
func members(value []byte) (n int) {
	if doc.IsObject(value) {
		_ = doc.EachMember(value, func(string, []byte) error { // canonical
			n++
			return nil
		})
	}
	return n
}

func (d *Document) parseSearches(partitioned bool) []search.Named {
	all := search.ParseAll(d.Body, partitioned)
	for i := range all {
		if def := all[i].Definition; def != nil {
			def.Design, def.Label = d.ID, all[i].Name
		}
	}
	return all
}

// Name returns the id without "_design/".
func (d *Document) Name() string { return strings.TrimPrefix(d.ID, doc.DesignPrefix) }

// Functions returns its functions, ready to be called.
func (d *Document) Functions() *script.Design { return d.functions() }

// Definition returns its views, nil when it has none.
func (d *Document) Definition(partitioned bool) (*view.Definition, error) {
	if partitioned {
		return d.parse[1]()
	}
	return d.parse[0]()
}

// Searches returns its full-text indexes, those that cannot be read with the reason, in the
// order that search.Find wants. They must not be changed.
func (d *Document) Searches(partitioned bool) []search.Named {
	if partitioned {
		return d.searches[1]()
	}
	return d.searches[0]()
}

// Search returns a full-text index, of "indexes" or of "nouveau" as the dialect says. Errors
// are those of search.Parse.
func (d *Document) Search(dialect syntax.Dialect, name string, partitioned bool) (*search.Definition, error) {
	if n, ok := search.Find(d.Searches(partitioned), dialect, name); ok {
		return n.Definition, n.Err
	}
	return search.Parse(d.Body, dialect, name, partitioned) // which says what is not there
}

// Wanted returns the indexes that it wants, each once. A member that cannot be read wants
// none.
func (d *Document) Wanted(partitioned bool) (out []index.Definition) {
	if def, err := d.Definition(partitioned); err == nil && def != nil {
		out = append(out, def.Wanted())
	}
	seen := map[string]struct{}{}
	for _, n := range d.Searches(partitioned) {
		if n.Definition == nil {
			continue
		}
		if _, there := seen[n.Definition.Signature]; !there {
			seen[n.Definition.Signature] = struct{}{}
			out = append(out, n.Definition.Wanted())
		}
	}
	manual := string(d.Member("autoupdate")) == "false"
	for i := range out {
		out[i].Manual = manual
	}
	return out
}

// Indexes returns its Mango indexes, in its order. They must not be changed.
func (d *Document) Indexes(partitioned bool) []*plan.Index {
	if partitioned {
		return d.indexes[1]()
	}
	return d.indexes[0]()
}

// Member returns a member of the document at a path of names, nil when there is
// none.
func (d *Document) Member(path ...string) []byte {
	value := d.Body
	for _, name := range path {
		value = doc.Lookup(value, name)
	}
	return value
}

// set is the design documents of one database at one moment.
type set struct {
	all        []*Document
	byID       map[string]*Document
	ranges     [][]*Document // by range of the map
	validating []*Document
	bytes      int

	standard struct { // see Options.Standard
		once sync.Once
		doc  *Document
	}
}

// standIn returns the document that counts in the place of one that is not there, so
// that its functions are compiled once.
func (s *set) standIn(build func() *Document) *Document {
	s.standard.once.Do(func() { s.standard.doc = build() })
	return s.standard.doc
}

func newSet(ranges [][]*Document) *set {
	s := &set{ranges: ranges, byID: map[string]*Document{}}
	for _, part := range ranges {
		for _, d := range part {
			s.byID[d.ID] = d
		}
	}
	for _, d := range s.byID { // a document that two ranges have, while one is split, once
		s.all = append(s.all, d)
		s.bytes += documentBytes + 3*len(d.Body) + searchBytes*d.count // as text for the functions, and in definitions, as well
	}
	slices.SortFunc(s.all, func(a, b *Document) int { return strings.Compare(a.ID, b.ID) })
	for _, d := range s.all {
		if d.validates {
			s.validating = append(s.validating, d)
		}
	}
	return s
}

func (s *set) size() int {
	if s == nil {
		return 0
	}
	return s.bytes
}

// same returns the document, when it was loaded before. Replication and purges may
// bring another text of the same revision.
func (s *set) same(found *shard.Doc) *Document {
	if s == nil {
		return nil
	}
	if d := s.byID[found.ID]; d != nil && d.Rev == found.Rev && bytes.Equal(d.Body, found.Body) {
		return d
	}
	return nil
}
