package search

import (
	"strings"

	clustersearch "divan/cluster/search"
	"divan/httpapi/core"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

// searchForms are the parameters of _search, as they stand in a query string.
func searchForms() map[string]form {
	return map[string]form{
		"q": asText, "query": asText, "partition": asText, "bookmark": asText, "limit": asJSON, "sort": asJSON,
		"include_docs": asBoolean, "include_fields": asJSON, "stale": asText, "stable": asBoolean,
		"counts": asJSON, "ranges": asJSON, "drilldown": asJSON,
		"group_field": asText, "group_by": asText, "group_sort": asJSON, "group_limit": asNumber,
		"highlight_fields": asJSON, "highlight_pre_tag": asTag, "highlight_post_tag": asTag,
		"highlight_number": asNumber, "highlight_size": asNumber,
	}
}

// searchParams are the parameters of a request of _search.
type searchParams struct {
	query        *string
	partitions   []string // all that are named
	bookmark     *string
	limit        *int
	stale        bool
	docs         bool
	sort         ordering
	fields       []string
	counts       []string
	counted      bool
	ranges       []search.FieldRanges
	ranged       bool
	drilldown    []search.Drilldown
	malformed    error // of the first of counts, ranges and drilldown whose value is wrong
	groupField   *string
	oldGroups    bool // by group_by, the older name, which has other names in its answers
	groupSort    []search.Sort
	groupLimit   int
	highlight    search.Highlight
	groupsSorted bool
}

// defaultGroups is how many groups an answer has.
const defaultGroups = 10

// searchParamsOf reads parameters in their order: of one that is given twice the last counts.
func (f *Family) searchParamsOf(list []param) (*searchParams, error) {
	p := &searchParams{groupLimit: defaultGroups, highlight: search.Highlight{Before: "<em>", After: "</em>", Number: 1, Size: 100}}
	for i := range list {
		if err := p.take(f.patterns, &list[i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// take takes one parameter.
func (p *searchParams) take(x *patterns, in *param) (err error) {
	switch in.name {
	case "q", "query":
		return in.mustText(&p.query)
	case "partition":
		text, ok := in.text()
		if !ok {
			return in.invalid()
		}
		p.partitions = append(p.partitions, text)
	case "bookmark":
		text, ok := in.text()
		if !ok {
			return clustersearch.ErrBookmark()
		}
		p.bookmark = &text
	case "limit":
		var n int
		if n, err = in.integer(); err == nil {
			p.limit = &n
		}
	case "sort":
		p.sort.parts, err = x.searchSort(in.value)
	case "include_docs":
		on, failure := in.boolean()
		if failure == nil {
			p.docs = on
		} else if in.plain {
			err = failure
		}
	case "stable":
		_, err = in.boolean()
	case "stale":
		text, ok := in.text()
		p.stale = ok && text == "ok"
		if !p.stale && in.plain {
			err = fault.New(fault.QueryParse, "stale only available as stale=ok")
		}
	case "include_fields":
		p.fields, err = in.textList()
	case "counts":
		p.counted = true
		p.counts, err = in.distinctTexts()
		p.refuseLater(err)
		return nil
	case "ranges":
		p.ranged = true
		p.ranges, err = numberRanges(in.value)
		p.refuseLater(err)
		return nil
	case "drilldown":
		p.refuseLater(p.addDrilldown(in))
	default:
		err = p.takePresentation(x, in)
	}
	return err
}

// refuseLater keeps the first error of a value that CouchDB's index parses: what the node
// checks comes before it.
func (p *searchParams) refuseLater(err error) {
	if p.malformed == nil {
		p.malformed = err
	}
}

// takePresentation takes what is about groups and highlights.
func (p *searchParams) takePresentation(x *patterns, in *param) (err error) {
	switch in.name {
	case "group_field", "group_by":
		text, ok := in.text()
		if !ok {
			return fault.Newf(fault.BadRequest, "Unrecognized group_field parameter: %s", in.value)
		}
		field, err := x.groupField(text)
		if err != nil {
			return err
		}
		p.groupField, p.oldGroups = &field, in.name == "group_by"
	case "group_sort":
		p.groupSort, err = x.searchSort(in.value)
		p.groupsSorted = string(in.value) != `"relevance"`
	case "group_limit":
		p.groupLimit, err = in.positive()
	case "highlight_fields":
		p.highlight.Fields, err = in.distinctTexts()
	case "highlight_pre_tag":
		p.highlight.Before, err = in.tag()
	case "highlight_post_tag":
		p.highlight.After, err = in.tag()
	case "highlight_number":
		p.highlight.Number, err = in.positive()
	case "highlight_size":
		p.highlight.Size, err = in.positive()
	}
	return err
}

func (p *param) mustText(into **string) error {
	text, ok := p.text()
	if !ok {
		return bad("Malformed query syntax")
	}
	*into = &text
	return nil
}

func (p *param) tag() (string, error) {
	text, ok := p.text()
	if !ok {
		return "", p.invalid()
	}
	return text, nil
}

// positive returns a whole number above zero.
func (p *param) positive() (int, error) {
	n, err := p.integer()
	if err == nil && n < 1 {
		err = fault.New(fault.QueryParse, p.name+" must be greater than zero")
	}
	return n, err
}

// numberRanges reads ranges: an object of objects of ranges of numbers in the query language.
func numberRanges(value []byte) (out []search.FieldRanges, err error) {
	notValid := func() error { return fault.Newf(fault.BadRequest, "%s is not a valid ranges query", value) }
	if !doc.IsObject(value) {
		return nil, notValid()
	}
	err = doc.EachMember(value, func(field string, ranges []byte) error {
		if !doc.IsObject(ranges) {
			return notValid()
		}
		one := search.FieldRanges{Field: field}
		err := doc.EachMember(ranges, func(label string, text []byte) error {
			of, ok := doc.Unquote(text)
			if !ok {
				return bad("invalid ranges query")
			}
			r, err := numberRange(label, of)
			one.Ranges = append(one.Ranges, r)
			return err
		})
		out = append(out, one)
		return err
	})
	return out, err
}

// numberRange reads one range.
func numberRange(label, text string) (search.NumberRange, error) {
	q, err := syntax.Parse(text, syntax.Search)
	if err != nil {
		return search.NumberRange{}, err
	}
	r, ok := q.(syntax.NumberRange)
	if !ok {
		return search.NumberRange{}, bad(text + " was not a well-formed range specification")
	}
	return search.NumberRange{Label: label, Lower: r.Lower, Upper: r.Upper, IncludesLower: r.IncludesLower, IncludesUpper: r.IncludesUpper}, nil
}

// addDrilldown takes [field, value, …], which is added to what was there, or a list of such
// lists, which replaces it.
func (p *searchParams) addDrilldown(in *param) error {
	if !doc.IsArray(in.value) {
		return bad("invalid drilldown query")
	}
	lists, all := [][]byte{}, true
	_ = doc.EachElement(in.value, func(e []byte) error { // of JSON that was read
		lists, all = append(lists, e), all && doc.IsArray(e)
		return nil
	})
	if len(lists) == 0 || !all {
		lists = [][]byte{in.value}
	} else {
		p.drilldown = nil
	}
	for _, list := range lists {
		values, ok := texts(list)
		switch {
		case !ok:
			return fault.Newf(fault.BadRequest, "invalid drilldown query: %s contains a non-string item", list)
		case len(values) == 0:
			return bad("all CategoryPaths must have length > 0")
		}
		if len(p.drilldown) == search.MaxParts { // each is compared with all
			return search.ErrParts(search.MaxParts)
		}
		for _, d := range p.drilldown {
			if d.Field == values[0] {
				return bad("dimension '" + values[0] + "' was already added")
			}
		}
		p.drilldown = append(p.drilldown, search.Drilldown{Field: values[0], Values: values[1:]})
	}
	return nil
}

// partition returns the partition that is asked for; empty: none. inPath is that of the path.
func (p *searchParams) partition(inPath string) (string, error) {
	out := inPath
	for _, one := range p.partitions {
		if out != "" && one != out {
			return "", bad("Multiple conflicting values for `partition` provided")
		}
		out = one
	}
	return out, nil
}

// check refuses what does not go together with the index or the database, in CouchDB's order.
func (p *searchParams) check(c *core.Call, partition string, byPartition bool) error {
	set := c.Config.Search
	limit, most := set.Limit, set.MaxLimit
	if c.DB.Meta().Partitioned {
		limit, most = set.LimitPartitions, set.MaxLimitPartitions
	}
	switch {
	case p.query == nil:
		return fault.New(fault.QueryParse, "Query must include a 'q' or 'query' argument")
	case partition != "" && !byPartition:
		return bad("`partition` not supported on this index")
	case partition == "" && byPartition:
		return bad("`partition` parameter is mandatory for queries to this index.")
	case p.limit == nil:
		p.limit = new(int)
		*p.limit = int(min(limit, most))
	case *p.limit < 0:
		return fault.New(fault.QueryParse, "limit must be greater than or equal to zero")
	case int64(*p.limit) > most:
		return fault.Newf(fault.QueryParse, "Value for limit is too large, must not exceed %d", most)
	}
	if int64(p.groupLimit) > set.MaxGroupLimit {
		return fault.Newf(fault.QueryParse, "Value for group_limit is too large, must not exceed %d", set.MaxGroupLimit)
	}
	if partition != "" && (p.counted || p.ranged || p.malformed != nil || len(p.drilldown) > 0 || p.groupField != nil || p.groupsSorted || p.groupLimit != defaultGroups) {
		return bad("`partition` and any of " + strings.Join([]string{
			"`drilldown`", "`ranges`", "`group_field`", "`group_sort`", "`group_limit` or `group_by` are incompatible",
		}, ", "))
	}
	return p.malformed
}
