package listing

import (
	"strconv"
	"strings"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Choice is a boolean parameter that may be absent.
type Choice int8

// Its values.
const (
	Unset Choice = iota
	Yes
	No
)

func choose(b bool) Choice {
	if b {
		return Yes
	}
	return No
}

// Params are the parameters of view-like reads: views, _all_docs,
// _all_dbs and their kin (api.md section 11.2). They come from the query
// string or from the members of a body; where both name one, the last that is
// applied counts. Keys are kept as canonical JSON text, because not every
// endpoint wants strings.
type Params struct {
	StartKey, EndKey []byte // JSON; nil when not given. "key" sets both
	Keys             []byte // JSON as given, of any type; nil when not given
	StartID, EndID   string // startkey_docid, endkey_docid
	Limit, Skip      int    // limit is -1 when not given
	Descending       bool
	InclusiveEnd     bool
	IncludeDocs      bool
	Conflicts        Choice
	Attachments      bool
	EncodingInfo     bool // att_encoding_info
	UpdateSeq        bool
	Sorted           bool
	Stable           bool
	Update           string // "true", "false", "lazy"
	Partition        string
	HasPartition     bool
	Reduction
}

// Reduction are the parameters that only views with a reduce function have a use
// for.
type Reduction struct {
	Reduce, Group Choice
	GroupLevel    int // -1 when not given
}

// newViewParams returns the defaults.
func newViewParams() Params {
	return Params{
		Limit: -1, InclusiveEnd: true, Sorted: true, Update: "true",
		Reduction: Reduction{GroupLevel: -1},
	}
}

// ParseQuery applies a query string to the defaults.
func ParseQuery(query []core.Param) (Params, error) {
	v := newViewParams()
	return v, v.applyQuery(query)
}

// applyQuery applies the parameters of a query string in their order.
func (v *Params) applyQuery(query []core.Param) error {
	for _, p := range query {
		if err := v.apply(p.Name, viewValue{text: p.Value}); err != nil {
			return err
		}
	}
	return nil
}

// applyBody applies the members of a JSON object, which have the same names as
// the parameters of a query string.
func (v *Params) applyBody(object []byte) error {
	return doc.EachMember(object, func(name string, value []byte) error {
		return v.apply(name, viewValue{json: value})
	})
}

// apply sets one parameter; an unknown one is passed over.
func (v *Params) apply(name string, value viewValue) (err error) {
	switch name {
	case "key":
		v.StartKey, err = value.key()
		v.EndKey = v.StartKey
	case "startkey", "start_key":
		v.StartKey, err = value.key()
	case "endkey", "end_key":
		v.EndKey, err = value.key()
	case "keys":
		v.Keys, err = value.key()
	case "startkey_docid", "start_key_doc_id":
		v.StartID = value.string()
	case "endkey_docid", "end_key_doc_id":
		v.EndID = value.string()
	case "limit":
		if v.Limit, err = value.count(); v.Limit > core.MostRows {
			err = fault.Newf(fault.QueryParse, "Limit is too large, must not exceed %d", int64(core.MostRows))
		}
	case "skip":
		v.Skip, err = value.count()
	case "group_level":
		v.GroupLevel, err = value.count()
	case "partition":
		v.Partition, v.HasPartition = value.string(), true
	case "stale", "stable", "update":
		err = v.applyFreshness(name, value.string())
	default:
		err = v.applySwitch(name, value)
	}
	return err
}

// applySwitch sets a boolean parameter.
func (v *Params) applySwitch(name string, value viewValue) (err error) {
	switch name {
	case "descending":
		v.Descending, err = value.boolean()
	case "inclusive_end":
		v.InclusiveEnd, err = value.boolean()
	case "include_docs":
		v.IncludeDocs, err = value.boolean()
	case "conflicts":
		v.Conflicts, err = value.choice()
	case "attachments":
		v.Attachments, err = value.boolean()
	case "att_encoding_info":
		v.EncodingInfo, err = value.boolean()
	case "update_seq":
		v.UpdateSeq, err = value.boolean()
	case "sorted":
		v.Sorted, err = value.boolean()
	case "reduce":
		v.Reduce, err = value.choice()
	case "group":
		v.Group, err = value.choice()
	}
	return err
}

// applyFreshness sets how current a view has to be.
func (v *Params) applyFreshness(name, value string) error {
	switch {
	case name == "stale" && value == "ok":
		v.Stable, v.Update = true, "false"
	case name == "stale" && value == "update_after":
		v.Stable, v.Update = true, "lazy"
	case name == "stable" && (value == "true" || value == "false"):
		v.Stable = value == "true"
	case name == "update" && (value == "true" || value == "false" || value == "lazy"):
		v.Update = value
	default:
		return fault.Newf(fault.QueryParse, "Invalid value for `%s`.", name)
	}
	return nil
}

// checkMap refuses what is only for reduce views, for reads that have no
// reduce function, and keys together with a range.
func (v *Params) checkMap() error {
	switch {
	case v.Reduce == Yes:
		return fault.New(fault.QueryParse, "Reduce is invalid for map-only views.")
	case v.Group == Yes || v.GroupLevel > 0:
		return fault.New(fault.QueryParse, "Invalid use of grouping on a map view.")
	case v.Keys != nil && (v.StartKey != nil || v.EndKey != nil):
		return fault.New(fault.QueryParse, "`keys` is incompatible with `key`, `start_key` and `end_key`")
	}
	return nil
}

// viewValue is a parameter from a query string (text) or from a body (json).
type viewValue struct {
	text string
	json []byte
}

// key returns a JSON value in canonical form.
func (v viewValue) key() ([]byte, error) {
	text := v.json
	if text == nil {
		text = []byte(v.text)
	}
	return doc.Canonical(nil, text)
}

// string returns text as it is and a JSON string without its quotes; another
// JSON value is its own text.
func (v viewValue) string() string {
	if v.json == nil {
		return v.text
	}
	if s, ok := doc.Unquote(v.json); ok {
		return s
	}
	return string(v.json)
}

// boolean reads true or false in any case; in a body a string will do.
func (v viewValue) boolean() (bool, error) {
	text, quoted := v.text, true
	if v.json != nil {
		text, quoted = doc.Unquote(v.json)
		if !quoted {
			text = string(v.json)
		}
	}
	switch {
	case strings.EqualFold(text, "true") && (quoted || text == "true"):
		return true, nil
	case strings.EqualFold(text, "false") && (quoted || text == "false"):
		return false, nil
	}
	shown := text
	if quoted {
		shown = erlangString(text)
	}
	return false, fault.New(fault.QueryParse, "Invalid boolean parameter: "+shown)
}

func (v viewValue) choice() (Choice, error) {
	b, err := v.boolean()
	if err != nil {
		return Unset, err
	}
	return choose(b), nil
}

// count reads an integer of at least zero; one above mostRows counts as the
// next.
func (v viewValue) count() (int, error) {
	var text, shown string
	if v.json == nil {
		text, shown = v.text, erlangString(v.text)
	} else if s, ok := doc.Unquote(v.json); ok {
		return 0, fault.New(fault.QueryParse, "Invalid value for integer: <<"+erlangBytes(s)+">>")
	} else {
		text = string(v.json)
		shown = text
	}
	negative, digits := false, text
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		negative, digits = text[0] == '-', text[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fault.New(fault.QueryParse, "Invalid value for integer: "+shown)
	}
	n, _ := strconv.ParseInt(digits, 10, 64) // of too many digits it makes the greatest number
	if negative && n > 0 {
		return 0, fault.New(fault.QueryParse, "Invalid value for positive integer: "+shown)
	}
	return int(min(n, core.MostRows+1)), nil
}

// erlangString prints text as Erlang prints a list of its bytes: what CouchDB
// puts into its refusals, and clients' test suites compare.
func erlangString(s string) string {
	if s == "" {
		return "[]"
	}
	if !erlangPrintable(s) {
		return "[" + joinBytes(s) + "]"
	}
	return quoteErlang(s)
}

// erlangBytes is erlangString for the inside of <<…>>.
func erlangBytes(s string) string {
	if s == "" {
		return ""
	}
	if !erlangPrintable(s) {
		return joinBytes(s)
	}
	return quoteErlang(s)
}

// erlangPrintable reports whether every byte is a printable character of
// ISO 8859-1, as io_lib:printable_latin1_list does.
func erlangPrintable(s string) bool {
	for i := range len(s) {
		b := s[i]
		if b < 8 || b == 14 || b > 13 && b < 27 || b > 27 && b < 32 || b > 126 && b < 160 {
			return false
		}
	}
	return true
}

func quoteErlang(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\v':
			b.WriteString(`\v`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case 27:
			b.WriteString(`\e`)
		default:
			b.WriteRune(rune(c))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func joinBytes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(s[i])))
	}
	return b.String()
}
