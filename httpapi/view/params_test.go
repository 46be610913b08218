package view

import (
	"strings"
	"testing"

	"divan/httpapi/core"
	"divan/httpapi/listing"
	shardview "divan/shard/view"
	"divan/storage/fault"
)

// parameters reads a query string, "name=value&…", not escaped.
func parameters(t *testing.T, query string) (listing.Params, error) {
	t.Helper()
	var list []core.Param
	if query != "" {
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			list = append(list, core.Param{Name: name, Value: value})
		}
	}
	return listing.ParseQuery(list)
}

func TestGrouping(t *testing.T) {
	for query, want := range map[string]int{
		"":                           0,
		"group=false":                0,
		"group=true":                 shardview.GroupExact,
		"group_level=0":              0,
		"group_level=3":              3,
		"group_level=0&group=false":  0,
		"group_level=2&group=true":   2,
		"group=TRUE":                 shardview.GroupExact,
		"group=true&group=false":     0,
		"group_level=1&group_level=": -2,
		"group_level=-1":             -2,
		"group_level=1.5":            -2,
		"group=1":                    -2,
		"group_level=2&group=false":  -2,
	} {
		p, err := parameters(t, query)
		level := 0
		if err == nil {
			level, err = groupLevel(&p)
		}
		switch {
		case want == -2 && !fault.Is(err, fault.QueryParse):
			t.Errorf("%s: level %d, %v", query, level, err)
		case want != -2 && (err != nil || level != want):
			t.Errorf("%s: level %d, want %d, %v", query, level, want, err)
		}
	}
}

// Which parameters go together: of a view without a reduce function, and of one with.
func TestParametersTogether(t *testing.T) {
	const (
		mapOnly  = "Reduce is invalid for map-only views."
		grouping = "Invalid use of grouping on a map view."
		multi    = "Multi-key fetches for reduce views must use `group=true`"
		ranges   = "`keys` is incompatible with `key`, `start_key` and `end_key`"
		docs     = "`include_docs` is invalid for reduce"
		losers   = "`conflicts` is invalid for reduce views."
		array    = "`keys` must be an array of strings."
	)
	for _, c := range []struct{ query, mapped, reduced string }{
		{"", "", ""},
		{"reduce=true", mapOnly, ""},
		{"reduce=false", "", ""},
		{"group=true", grouping, ""},
		{"group=false", "", ""},
		{"group_level=0", "", ""},
		{"group_level=1", grouping, ""},
		{"reduce=false&group=true", grouping, grouping},
		{"reduce=false&group_level=2", grouping, grouping},
		{"reduce=true&group=true", mapOnly, ""},
		{`keys=["a","b"]`, "", multi},
		{`keys=[]`, "", multi},
		{`keys=["a"]`, "", ""}, // one key is that key
		{`keys=["a"]&startkey="b"`, "", ""},
		{`keys=["a","b"]&group=true`, grouping, ""},
		{`keys=["a","b"]&group_level=1`, grouping, multi},
		{`keys=["a","b"]&reduce=false`, "", ""},
		{`keys=["a","b"]&startkey="a"`, ranges, multi},
		{`keys=["a","b"]&key="a"&group=true`, ranges, ranges},
		{`keys=["a","b"]&endkey="a"&group=true`, ranges, ranges},
		{`keys="a"`, array, multi},
		{`keys={}&group=true`, array, array},
		{"include_docs=true", "", docs},
		{"include_docs=false", "", ""},
		{"include_docs=true&reduce=false", "", ""},
		{"include_docs=true&reduce=true", mapOnly, docs},
		{"conflicts=true", "", losers},
		{"conflicts=false", "", losers},
		{"conflicts=true&reduce=false", "", ""},
		{"include_docs=true&conflicts=true", "", docs},
	} {
		for i, want := range []string{c.mapped, c.reduced} {
			p, err := parameters(t, c.query)
			if err != nil {
				t.Errorf("%s: %v", c.query, err)
				continue
			}
			reducible := i == 1
			p.KeysToKey()
			level, err := groupLevel(&p)
			if err == nil {
				err = check(&p, reducible, reducible && p.Reduce != listing.No, level)
			}
			got := ""
			if err != nil {
				got = fault.Reason(err)
			}
			if got != want || err != nil && !fault.Is(err, fault.QueryParse) {
				t.Errorf("%s, with a reduce function %t: %q, want %q", c.query, reducible, got, want)
			}
		}
	}
}

func TestFreshness(t *testing.T) {
	for query, want := range map[string]shardview.Update{
		"":                                shardview.UpdateBefore,
		"update=true":                     shardview.UpdateBefore,
		"update=false":                    shardview.UpdateNever,
		"update=lazy":                     shardview.UpdateAfter,
		"stale=ok":                        shardview.UpdateNever,
		"stale=update_after":              shardview.UpdateAfter,
		"stale=ok&update=true":            shardview.UpdateBefore, // the last one counts
		"update=true&stale=ok":            shardview.UpdateNever,
		"stable=true":                     shardview.UpdateBefore,
		"update=lazy&stable=false":        shardview.UpdateAfter,
		"stale=update_after&update=false": shardview.UpdateNever,
	} {
		p, err := parameters(t, query)
		if got := freshness(p.Update); err != nil || got != want {
			t.Errorf("%s: %d, want %d, %v", query, got, want, err)
		}
	}
	for query, name := range map[string]string{
		"update=": "update", "update=TRUE": "update", "update=maybe": "update", "stale=": "stale", "stale=true": "stale", "stable=1": "stable", "stable=ok": "stable",
	} {
		if _, err := parameters(t, query); fault.Reason(err) != "Invalid value for `"+name+"`." {
			t.Errorf("%s: %v", query, err)
		}
	}
}
