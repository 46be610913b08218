package server

import (
	"net/url"
	"slices"
	"testing"

	"divan/httpapi/core"
)

func FuzzLoginForm(f *testing.F) {
	f.Add(`{"name":"adm","password":"pass"}`, true)
	f.Add("name=adm&password=pass&username=x&token=1", false)
	f.Add("%zz=;&&=", false)
	f.Fuzz(func(t *testing.T, body string, isJSON bool) {
		var form loginForm
		var err error
		if isJSON {
			err = form.readJSON([]byte(body))
		} else {
			form.readForm(body)
		}
		if err != nil {
			return
		}
		l, err := form.login()
		if err == nil && !form.hasName && !form.hasUsername {
			t.Fatalf("a login without a name: %+v", l)
		}
	})
}

// Forms are read as CouchDB reads them: leniently.
func TestParseForm(t *testing.T) {
	for _, tc := range []struct {
		body string
		want []core.Param
	}{
		{"", nil},
		{"a=1&b=2;c=3", []core.Param{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c", Value: "3"}}},
		{"a=1&a=2", []core.Param{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}},
		{"a=b=c&d", []core.Param{{Name: "a", Value: "b=c"}, {Name: "d", Value: ""}}},
		{"a=100%&b=%zz%4", []core.Param{{Name: "a", Value: "100%"}, {Name: "b", Value: "%zz%4"}}},
		{"a=%%41%2541", []core.Param{{Name: "a", Value: "%A%41"}}},
		{"a+b=+%2B%3b%26", []core.Param{{Name: "a b", Value: " +;&"}}},
		{"&&a=1", []core.Param{{Name: "", Value: ""}, {Name: "", Value: ""}, {Name: "a", Value: "1"}}},
	} {
		if got := parseForm(tc.body); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.body, got, tc.want)
		}
	}
}

func FuzzParseForm(f *testing.F) {
	f.Add("name", "adm", "100%;&+=", "a=%4&;%%41")
	f.Add("", "", "\xff \x00", "&&;=%")
	f.Fuzz(func(t *testing.T, name, first, second, raw string) {
		parseForm(raw)
		var fields []core.Param
		for _, values := range []url.Values{{name: {first, second}}, {"x" + name: {second}}} {
			fields = append(fields, parseForm(values.Encode())...)
		}
		if want := []core.Param{{Name: name, Value: first}, {Name: name, Value: second}, {Name: "x" + name, Value: second}}; !slices.Equal(fields, want) {
			t.Fatalf("%q, want %q", fields, want)
		}
	})
}
