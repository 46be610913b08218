package httpapi

import (
	"net/url"
	"slices"
	"testing"
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
		want []param
	}{
		{"", nil},
		{"a=1&b=2;c=3", []param{{name: "a", value: "1"}, {name: "b", value: "2"}, {name: "c", value: "3"}}},
		{"a=1&a=2", []param{{name: "a", value: "1"}, {name: "a", value: "2"}}},
		{"a=b=c&d", []param{{name: "a", value: "b=c"}, {name: "d", value: ""}}},
		{"a=100%&b=%zz%4", []param{{name: "a", value: "100%"}, {name: "b", value: "%zz%4"}}},
		{"a=%%41%2541", []param{{name: "a", value: "%A%41"}}},
		{"a+b=+%2B%3b%26", []param{{name: "a b", value: " +;&"}}},
		{"&&a=1", []param{{name: "", value: ""}, {name: "", value: ""}, {name: "a", value: "1"}}},
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
		var fields []param
		for _, values := range []url.Values{{name: {first, second}}, {"x" + name: {second}}} {
			fields = append(fields, parseForm(values.Encode())...)
		}
		if want := []param{{name: name, value: first}, {name: name, value: second}, {name: "x" + name, value: second}}; !slices.Equal(fields, want) {
			t.Fatalf("%q, want %q", fields, want)
		}
	})
}
