package plan

import (
	"divan/shard/query"
	"divan/storage/doc"
)

// Find is the request of _find and _explain (api.md section 14.1).
type Find struct {
	Selector  *query.Selector
	UseIndex  []string // design document, index; none: any
	Bookmark  *Bookmark
	Limit     int
	Skip      int
	Sort      []Column      // all in one direction
	Fields    *query.Fields // nil: whole documents
	Partition string
	R         int
	Count     bool // the number of matches is wanted, not documents
	Options

	names      []string // of Fields
	fieldList  []byte   // Fields as JSON
	bookmark   []byte   // as the client sent it, as JSON; nil: none
	unreadable bool     // the bookmark is none: _find refuses it, _explain shows it
	start      bool     // it is NoBookmark, which is the start for an index of full text only
}

// Options are the switches of a request.
type Options struct {
	Conflicts, StaleOK, Update, Stable, Stats, AllowFallback bool
}

// Column is a field of an index or of a sort.
type Column struct {
	Name string
	Desc bool
}

// Descending reports whether the answer is wanted backwards.
func (f *Find) Descending() bool { return len(f.Sort) > 0 && f.Sort[0].Desc }

// FieldList returns the fields that are wanted as a JSON array; empty: all.
func (f *Find) FieldList() []byte { return f.fieldList }

// SentBookmark returns the bookmark as the client sent it, as JSON; "nil" when there was none.
func (f *Find) SentBookmark() []byte {
	if f.bookmark == nil {
		return []byte(`"` + NoBookmark + `"`)
	}
	return f.bookmark
}

// InvalidBookmark is the refusal of the bookmark.
func (f *Find) InvalidBookmark() error {
	return refusal("invalid_bookmark", "Invalid bookmark value: "+string(f.bookmark))
}

// ParseFind reads the body of a request. Refusals are *fault.Error with CouchDB's
// name in Code and its text in Reason; they come in CouchDB's order.
func ParseFind(body []byte, defaultLimit int) (*Find, error) {
	o, err := parseOptions(body)
	if err != nil {
		return nil, err
	}
	f := &Find{}
	f.Selector = o.selector(o.required("selector"))
	f.UseIndex = o.useIndex(o.take("use_index"))
	f.takeBookmark(o)
	f.Limit = o.integer("limit", 0, defaultLimit)
	f.Skip = o.integer("skip", 0, 0)
	f.Sort = o.sort(o.take("sort"))
	f.takeFields(o)
	f.Partition = o.partition()
	f.R = o.integer("r", 1, 1)
	f.Conflicts = o.boolean("conflicts", false)
	f.takeStale(o)
	f.Update = o.boolean("update", true)
	f.Stable = o.boolean("stable", false)
	f.Stats = o.boolean("execution_stats", false)
	f.AllowFallback = o.boolean("allow_fallback", true)
	f.Count = o.boolean("count", false)
	return f, o.end()
}

func (f *Find) takeBookmark(o *options) {
	v := o.take("bookmark")
	if v == nil || string(v) == "null" || string(v) == `""` {
		return
	}
	f.bookmark = v
	text, ok := doc.Unquote(v)
	if ok {
		f.Bookmark, ok = decodeBookmark(text)
	}
	f.unreadable = !ok
	f.start = text == NoBookmark
}

func (f *Find) takeFields(o *options) {
	v := o.take("fields")
	if v == nil {
		v = []byte("[]")
	}
	fields, err := query.ParseFields(v)
	if err != nil {
		o.fail(err)
		return
	}
	f.Fields, f.fieldList = fields, v
	_ = doc.EachElement(v, func(item []byte) error { // strings, says ParseFields
		name, _ := doc.Unquote(item)
		f.names = append(f.names, name)
		return nil
	})
}

func (f *Find) takeStale(o *options) {
	switch v := o.take("stale"); string(v) {
	case "", "false", `"false"`:
	case `"ok"`:
		f.StaleOK = true
	default:
		o.refuse("invalid_ok_or_false_value", "Invalid ok or false value: "+term(v))
	}
}
