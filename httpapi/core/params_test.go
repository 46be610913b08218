package core

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"divan/storage/fault"
)

func TestParseQuery(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		want []Param
	}{
		{"", nil},
		{"a=1&b=2&a=3", []Param{{"a", "1"}, {"b", "2"}, {"a", "3"}}},
		{"a", []Param{{"a", ""}}},
		{"a=&&b", []Param{{"a", ""}, {"b", ""}}},
		{"a=b=c", []Param{{"a", "b=c"}}},
		{"a+b=c+d%2B", []Param{{"a b", "c d+"}}},
		{"%61=%FF", []Param{{"a", "\xff"}}},
		{"a=1;b=2&;c=3;", []Param{{"a", "1"}, {"b", "2"}, {"c", "3"}}},
	} {
		c := &Target{scratch: &scratch{}}
		if err := c.parseQuery(tc.raw); err != nil || len(c.Query) != len(tc.want) {
			t.Errorf("%q: %q, %v", tc.raw, c.Query, err)
			continue
		}
		for i := range tc.want {
			if c.Query[i] != tc.want[i] {
				t.Errorf("%q: %q, want %q", tc.raw, c.Query, tc.want)
			}
		}
	}
	for _, raw := range []string{"a=%q", "%=1", "a=%2", "%zz"} {
		c := &Target{scratch: &scratch{}}
		if err := c.parseQuery(raw); fault.Reason(err) != "invalid_url_encoding" {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// FuzzQuery holds the parser of query strings to net/url.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=1&skip=x", "key=%22a%22", "keys=[1,2", "startkey=a+b&endkey=%7B%7D", "descending=TRUE&limit=-1",
		"a=%zz", "=&&=", "limit=99999999999999999999", "stale=ok&update=lazy&group_level=%01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c := &Target{scratch: &scratch{}}
		err := c.parseQuery(raw)
		if err != nil {
			if fault.Reason(err) != "invalid_url_encoding" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		want, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "&")) // which CouchDB takes likewise
		if err != nil {
			t.Fatalf("%q is taken, net/url refuses it: %v", raw, err)
		}
		for name, values := range want {
			if got, ok := c.QueryValue(name); !ok || got != values[0] {
				t.Fatalf("%q: %s is %q, want %q", raw, name, got, values[0])
			}
		}
	})
}

func TestIfNoneMatch(t *testing.T) {
	for header, want := range map[string]bool{
		`"1-a"`:          true,
		`W/"1-a"`:        true,
		`"x", "1-a"`:     true,
		`"x","1-a"`:      true,
		`1-a`:            false,
		`*`:              false,
		`"1-b"`:          false,
		``:               false,
		`"x", W/"1-a" `:  true,
		`"x, \"1-a\", y`: false,
	} {
		r := &http.Request{Header: http.Header{}}
		r.Header.Set("If-None-Match", header)
		if got := ETagMatches(r, `"1-a"`); got != want {
			t.Errorf("%s: %v", header, got)
		}
	}
}

func TestEscapedLikeCouchDB(t *testing.T) {
	for in, want := range map[string]string{
		`"q"#?%&:,=@`:      `%22q%22%23%3F%25%26:%2C%3D%40`,
		`a.b-c_d~e`:        `a.b-c_d%7Ee`,
		`a!b$c'd(e)f*g;h=`: `a%21b%24c%27d%28e%29f%2Ag%3Bh%3D`,
		`über/€ +`:         `%C3%BCber%2F%E2%82%AC%20%2B`,
	} {
		if got := string(AppendEscaped(nil, in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestPathEscapesRefused(t *testing.T) {
	for _, path := range []string{"/_up%zz", "/_up%4", "/a/%", "/a%2", "/%gg/x"} {
		c := &Target{scratch: &scratch{}}
		if err := c.parsePath(path, true); err == nil {
			t.Errorf("%s was taken as %q", path, c.Path)
		}
	}
}
