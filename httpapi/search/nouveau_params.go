package search

import (
	"math"
	"slices"
	"strconv"

	clustersearch "divan/cluster/search"
	"divan/shard/search"
	"divan/storage/doc"
	"divan/storage/fault"
)

// nouveauForms are the parameters of _nouveau, as they stand in a query string.
func nouveauForms() map[string]form {
	return map[string]form{
		"q": asText, "partition": asText, "bookmark": asText, "limit": asNumber, "sort": asJSON, "include_docs": asBoolean,
		"update": asBoolean, "counts": asJSON, "ranges": asJSON, "top_n": asNumber, "locale": asText,
	}
}

// nouveauParams are the parameters of a request of _nouveau.
type nouveauParams struct {
	query    *string
	bookmark *string
	limit    int
	sort     ordering
	docs     bool
	stale    bool
	counts   []string
	counted  bool
	ranges   []search.FieldRanges
	ranged   bool
	topN     int
	locale   string
}

const mostTopN = 1000

// nouveauParamsOf reads parameters in their order: of one that is given twice the last counts.
func (f *Family) nouveauParamsOf(list []param) (*nouveauParams, error) {
	p := &nouveauParams{limit: 25, topN: 10}
	for i := range list {
		if err := p.take(f.patterns, &list[i]); err != nil {
			return nil, err
		}
	}
	switch {
	case p.query == nil:
		return nil, fault.New(fault.QueryParse, "q parameter is mandatory")
	case p.topN > mostTopN:
		return nil, bad("top_n must be less than or equal to " + strconv.Itoa(mostTopN))
	}
	return p, nil
}

func (p *nouveauParams) take(x *patterns, in *param) (err error) {
	switch in.name {
	case "q":
		text, ok := in.text()
		if !ok {
			in.name = "query" // as CouchDB calls it
			return in.invalid()
		}
		p.query = &text
	case "locale":
		text, ok := in.text()
		if !ok {
			return in.invalid()
		}
		p.locale = text
	case "bookmark":
		if in.null() {
			p.bookmark = nil
			return nil
		}
		text, ok := in.text()
		if !ok {
			return clustersearch.ErrBookmark()
		}
		p.bookmark = &text
	case "limit":
		p.limit, err = in.atLeastOne()
	case "top_n":
		p.topN, err = in.atLeastOne()
	case "include_docs":
		p.docs, err = in.boolean()
	case "update":
		var update bool
		update, err = in.boolean()
		p.stale = !update
	case "sort":
		p.sort.parts, err = x.nouveauSort(in.value)
	case "counts":
		p.counted = true
		p.counts, err = countFields(in.value)
	case "ranges":
		p.ranged = true
		p.ranges, err = objectRanges(in.value)
	}
	return err
}

// atLeastOne returns a whole number above zero. CouchDB has other errors for a query string
// than for a body.
func (p *param) atLeastOne() (int, error) {
	n, err := p.integer()
	switch {
	case err != nil && p.plain:
		return 0, fault.New(fault.QueryParse, p.name+" parameter must be an integer")
	case err == nil && n < 1 && p.plain:
		return 0, bad(p.name + " must be greater than 0")
	case err == nil && n < 1:
		return 0, fault.New(fault.QueryParse, p.name+" parameter must be greater than zero")
	}
	return n, err
}

// countFields reads counts. A field that is named twice is counted once.
func countFields(value []byte) ([]string, error) {
	out, ok := texts(value)
	switch {
	case ok:
		slices.Sort(out)
		return slices.Compact(out), nil
	case doc.IsArray(value):
		return nil, fault.New(fault.QueryParse, "all items in counts parameter must be strings")
	default:
		return nil, fault.New(fault.QueryParse, "counts parameter must be a list of strings")
	}
}

// objectRanges reads ranges: an object of lists of {label, min, max, min_inclusive,
// max_inclusive}.
func objectRanges(value []byte) (out []search.FieldRanges, err error) {
	if !doc.IsObject(value) {
		return nil, fault.New(fault.QueryParse, "ranges parameter must be an object")
	}
	err = doc.EachMember(value, func(field string, list []byte) error {
		if !doc.IsArray(list) {
			return fault.New(fault.QueryParse, "range values must be lists of objects")
		}
		one := search.FieldRanges{Field: field}
		err := doc.EachElement(list, func(e []byte) error {
			r, err := objectRange(e)
			one.Ranges = append(one.Ranges, r)
			return err
		})
		out = append(out, one)
		return err
	})
	return out, err
}

func objectRange(value []byte) (search.NumberRange, error) {
	out := search.NumberRange{Lower: math.Inf(-1), Upper: math.Inf(1), IncludesLower: true, IncludesUpper: true}
	if !doc.IsObject(value) {
		return out, fault.New(fault.QueryParse, "all values in ranges parameter must be objects")
	}
	labelled := false
	err := doc.EachMember(value, func(name string, v []byte) (err error) {
		switch name {
		case "label":
			out.Label, labelled = doc.Unquote(v)
		case "min":
			out.Lower, err = boundOf(v, out.Lower)
		case "max":
			out.Upper, err = boundOf(v, out.Upper)
		case "min_inclusive":
			out.IncludesLower = string(v) != "false"
		case "max_inclusive":
			out.IncludesUpper = string(v) != "false"
		}
		return err
	})
	switch {
	case err != nil:
	case !labelled:
		err = fault.New(fault.QueryParse, "a range must have a label")
	case out.Lower > out.Upper:
		err = fault.New(fault.QueryParse, "the min of a range must not be above its max")
	}
	return out, err
}

// boundOf reads a number, which may stand in a string; null is open.
func boundOf(value []byte, open float64) (float64, error) {
	text, ok := doc.Unquote(value)
	if !ok {
		text = string(value)
	}
	if text == "null" && !ok {
		return open, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) {
		return 0, bad(string(value) + " is no number")
	}
	return n, nil
}
