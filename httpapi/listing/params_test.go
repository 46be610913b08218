package listing

import (
	"strings"
	"testing"

	"divan/httpapi/core"
	"divan/storage/fault"
)

func TestViewParamsRefused(t *testing.T) {
	for _, tc := range []struct{ name, value, reason string }{
		{"limit", "x", `Invalid value for integer: "x"`},
		{"limit", "-1", `Invalid value for positive integer: "-1"`},
		{"limit", "1.5", `Invalid value for integer: "1.5"`},
		{"limit", "576460752303423488", "Limit is too large, must not exceed 576460752303423487"},
		{"limit", "99999999999999999999", "Limit is too large, must not exceed 576460752303423487"},
		{"limit", "", `Invalid value for integer: []`},
		{"limit", "a\"b", `Invalid value for integer: "a\"b"`},
		{"limit", "a\x01", `Invalid value for integer: [97,1]`},
		{"skip", "few", `Invalid value for integer: "few"`},
		{"skip", "-99999999999999999999", `Invalid value for positive integer: "-99999999999999999999"`},
		{"group_level", "-", `Invalid value for integer: "-"`},
		{"descending", "maybe", `Invalid boolean parameter: "maybe"`},
		{"descending", "", `Invalid boolean parameter: []`},
		{"inclusive_end", "0", `Invalid boolean parameter: "0"`},
		{"reduce", "1", `Invalid boolean parameter: "1"`},
		{"stale", "true", "Invalid value for `stale`."},
		{"stable", "x", "Invalid value for `stable`."},
		{"update", "x", "Invalid value for `update`."},
	} {
		_, err := ParseQuery([]core.Param{{Name: tc.name, Value: tc.value}})
		if !fault.Is(err, fault.QueryParse) || fault.Reason(err) != tc.reason {
			t.Errorf("%s=%q: got %v, want %s", tc.name, tc.value, err, tc.reason)
		}
	}
	for _, name := range []string{"key", "keys", "startkey", "endkey", "start_key", "end_key"} {
		if _, err := ParseQuery([]core.Param{{Name: name, Value: "a"}}); fault.Reason(err) != "invalid UTF-8 JSON" {
			t.Errorf("%s=a: got %v", name, err)
		}
	}
}

// The largest limit that CouchDB takes is one.
func TestLargestLimit(t *testing.T) {
	const largest = "576460752303423487" // 2^59 - 1
	if p, err := ParseQuery([]core.Param{{Name: "limit", Value: largest}}); err != nil || p.Limit != core.MostRows {
		t.Errorf("%d, %v", p.Limit, err)
	}
	v := newViewParams()
	if err := v.applyBody([]byte(`{"limit":` + largest + `}`)); err != nil || v.Limit != core.MostRows {
		t.Errorf("in a body: %d, %v", v.Limit, err)
	}
}

func TestViewParamsBodyRefused(t *testing.T) {
	for _, tc := range []struct{ body, reason string }{
		{`{"limit":576460752303423488}`, "Limit is too large, must not exceed 576460752303423487"},
		{`{"limit":-1}`, "Invalid value for positive integer: -1"},
		{`{"limit":"many"}`, `Invalid value for integer: <<"many">>`},
		{`{"limit":"2"}`, `Invalid value for integer: <<"2">>`},
		{`{"limit":1.5}`, "Invalid value for integer: 1.5"},
		{`{"limit":null}`, "Invalid value for integer: null"},
		{`{"descending":"sure"}`, `Invalid boolean parameter: "sure"`},
		{`{"descending":1}`, "Invalid boolean parameter: 1"},
		{`{"stale":1}`, "Invalid value for `stale`."},
	} {
		v := newViewParams()
		err := v.applyBody([]byte(tc.body))
		if !fault.Is(err, fault.QueryParse) || fault.Reason(err) != tc.reason {
			t.Errorf("%s: got %v, want %s", tc.body, err, tc.reason)
		}
	}
}

func TestViewParamsLaterOnesCount(t *testing.T) {
	v := newViewParams()
	if err := v.applyBody([]byte(`{"limit":3,"startkey":"b","descending":"true","x":1}`)); err != nil {
		t.Fatal(err)
	}
	err := v.applyQuery([]core.Param{{Name: "limit", Value: "0"}, {Name: "limit", Value: "1"}, {Name: "key", Value: "+2"}, {Name: "startkey", Value: ` [1, "a"]`}, {Name: "conflicts", Value: "TRUE"}})
	if err == nil {
		t.Error("+2 is no JSON")
	}
	if err := v.applyQuery([]core.Param{{Name: "key", Value: " 2"}, {Name: "startkey", Value: ` [1, "a"]`}, {Name: "conflicts", Value: "TRUE"}}); err != nil {
		t.Fatal(err)
	}
	if v.Limit != 1 || string(v.StartKey) != `[1,"a"]` || string(v.EndKey) != "2" || !v.Descending || v.Conflicts != Yes {
		t.Errorf("got %+v", v)
	}
}

func TestViewParamsCheckMap(t *testing.T) {
	for _, tc := range []struct {
		query []core.Param
		want  string
	}{
		{[]core.Param{{Name: "reduce", Value: "true"}}, "Reduce is invalid for map-only views."},
		{[]core.Param{{Name: "reduce", Value: "false"}, {Name: "group", Value: "false"}, {Name: "group_level", Value: "0"}}, ""},
		{[]core.Param{{Name: "group", Value: "true"}}, "Invalid use of grouping on a map view."},
		{[]core.Param{{Name: "group_level", Value: "1"}}, "Invalid use of grouping on a map view."},
		{[]core.Param{{Name: "keys", Value: "[]"}, {Name: "key", Value: "1"}}, "`keys` is incompatible with `key`, `start_key` and `end_key`"},
		{[]core.Param{{Name: "keys", Value: "[]"}, {Name: "endkey", Value: "1"}}, "`keys` is incompatible with `key`, `start_key` and `end_key`"},
	} {
		v, err := ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		if got := fault.Reason(v.checkMap()); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.query, got, tc.want)
		}
	}
}

// FuzzParams holds the parser of parameters to its refusals: every input is taken, or
// refused with a fault that a client understands.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		"limit=1&skip=x", "key=\"a\"", "keys=[1,2", "startkey=a b&endkey={}", "descending=TRUE&limit=-1",
		"=&&=", "limit=99999999999999999999", "stale=ok&update=lazy&group_level=\x01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var query []core.Param
		for pair := range strings.SplitSeq(raw, "&") {
			name, value, _ := strings.Cut(pair, "=")
			query = append(query, core.Param{Name: name, Value: value})
		}
		v, err := ParseQuery(query)
		switch {
		case err != nil && !fault.Is(err, fault.QueryParse) && !fault.Is(err, fault.BadRequest):
			t.Fatalf("%q: %v", raw, err)
		case err == nil && (v.Limit < -1 || v.Skip < 0 || v.GroupLevel < -1):
			t.Fatalf("%q: %+v", raw, v)
		}
	})
}
