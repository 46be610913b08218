package search

import (
	"regexp"
	"strconv"
	"strings"

	"divan/shard/search"
	"divan/storage/doc"
	"divan/storage/fault"
)

// patterns of what hits may be sorted by.
type patterns struct{ field, distance, nouveau *regexp.Regexp }

func newPatterns() *patterns {
	return &patterns{
		field:    regexp.MustCompile(`^([-+]?)([.\w]+)(?:<(\w+)>)?$`),
		distance: regexp.MustCompile(`^([-+]?)<distance,([.\w]+),([.\w]+),([-+]?\d+(?:\.\d+)?),([-+]?\d+(?:\.\d+)?),(mi|km)>$`),
		nouveau:  regexp.MustCompile(`^([-+]?)([.\w]+)$`),
	}
}

// ordering is the order of hits that a request asks for.
type ordering struct {
	parts []search.Sort
	from  []int // of each part, which of the values of a hit is its: search.Distinct
}

// sortTexts returns the parts of an order: a string is one part.
func sortTexts(value []byte) (out []string, ok bool) {
	if text, is := doc.Unquote(value); is {
		return []string{text}, true
	}
	return texts(value)
}

// searchSort reads sort and group_sort of _search: nil stands for the order by score.
func (x *patterns) searchSort(value []byte) ([]search.Sort, error) {
	if string(value) == `"relevance"` {
		return nil, nil
	}
	parts, ok := sortTexts(value)
	if !ok {
		return nil, fault.Newf(fault.BadRequest, "Unrecognized sort parameter: %s", value)
	}
	var out []search.Sort
	for _, part := range parts {
		one, err := x.searchSortPart(part)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (x *patterns) searchSortPart(part string) (s search.Sort, err error) {
	switch part {
	case "<score>":
		return search.Sort{By: search.ByScore}, nil
	case "-<score>":
		return search.Sort{By: search.ByScore, Descending: true}, nil
	case "<doc>":
		return search.Sort{By: search.ByID}, nil
	case "-<doc>":
		return search.Sort{By: search.ByID, Descending: true}, nil
	}
	if m := x.distance.FindStringSubmatch(part); m != nil {
		s = search.Sort{By: search.ByDistance, Descending: m[1] == "-", Field: m[2], LatitudeField: m[3], Miles: m[6] == "mi"}
		if s.Longitude, err = strconv.ParseFloat(m[4], 64); err == nil {
			s.Latitude, err = strconv.ParseFloat(m[5], 64)
		}
		if err == nil {
			return s, nil
		}
	}
	m := x.field.FindStringSubmatch(part)
	if m == nil {
		return s, fault.New(fault.BadRequest, "Unrecognized sort parameter: "+part)
	}
	s = search.Sort{By: search.ByNumber, Field: m[2], Descending: m[1] == "-"}
	switch m[3] {
	case "", "number":
	case "string":
		s.By = search.ByString
	default:
		return s, fault.New(fault.BadRequest, "Unrecognized type: "+m[3])
	}
	return s, nil
}

// groupField reads group_field and group_by.
func (x *patterns) groupField(text string) (string, error) {
	m := x.field.FindStringSubmatch(text)
	if m == nil || strings.ContainsAny(m[1], "+-") {
		return "", fault.New(fault.BadRequest, "Unrecognized group_field parameter: "+text)
	}
	switch m[3] {
	case "", "string":
		return m[2], nil
	case "number":
		return "", fault.New(fault.BadRequest, "Group by number not supported. Group by string terms only.")
	default:
		return "", fault.New(fault.BadRequest, "Unrecognized type: "+m[3])
	}
}

// nouveauSort reads sort of _nouveau. relevance is by score, the best first.
func (x *patterns) nouveauSort(value []byte) ([]search.Sort, error) {
	parts, ok := sortTexts(value)
	if !ok {
		if doc.IsArray(value) {
			return nil, fault.New(fault.QueryParse, "all items in counts parameter must be strings")
		}
		return nil, fault.New(fault.QueryParse, "counts parameter must be a list of strings")
	}
	if len(parts) == 0 {
		return nil, fault.New(fault.QueryParse, "sort parameter must not be empty")
	}
	var out []search.Sort
	for _, part := range parts {
		if part == "relevance" {
			out = append(out, search.Sort{By: search.ByScore, Descending: true})
			continue
		}
		m := x.nouveau.FindStringSubmatch(part)
		if m == nil {
			return nil, fault.New(fault.BadRequest, part+" is not a valid sort parameter")
		}
		s := search.Sort{By: search.ByField, Field: m[2], Descending: m[1] == "-"}
		if m[2] == "_id" {
			s.By = search.ByID
		}
		out = append(out, s)
	}
	return out, nil
}
