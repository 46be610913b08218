package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The cases are those of CouchDB's own parser (src/config/src/config.erl), so
// that its files mean here what they mean there.
func TestParseINI(t *testing.T) {
	const deleted = "\x00"
	for text, want := range map[string]map[string]string{
		"": nil, "k": nil, "\n": nil, "[s]": nil, "[s ]": nil, "k1\nk2": nil, "=": nil, "==": nil, "= =": nil, " = ": nil,
		";": nil, ";;": nil, " ;": nil, "k = v": nil, "[s]\n;k = v": nil, "[s\nk=v": nil, "s[\nk=v": nil, "s]\nk=v": nil,
		";[s]\nk = v": nil, " ; [s]\nk = v": nil, "[s]\n\t;k = v": nil, "[s]\nk ;=v": nil, "[]\nk = v": nil, ";[s]\n ": nil,
		"[s]\n=v": nil, "[s]\n = v": nil,
		"[s]\nk=v":               {"k": "v"},
		"[s]\r\n\n\nk=v":         {"k": "v"},
		"[s]\rk=v\r":             {"k": "v"},
		"\ufeff[s]\nk=v":         {"k": "v"},
		"[s]\nk = v":             {"k": "v"},
		"[s]\nk= v":              {"k": "v"},
		"[s]\nk  =v":             {"k": "v"},
		"[s]\n k=  v  ":          {"k": "v"},
		"[s]\nk = v ; c":         {"k": "v"},
		"[s]\nk==v":              {"k": "=v"},
		"[s]\nk=v=":              {"k": "v="},
		"[s]\nk ==v":             {"k": "=v"},
		"[s]\nk=v=v":             {"k": "v=v"},
		"[s]\nk = =v":            {"k": "=v"},
		"[s]\nk= = v":            {"k=": "v"},
		"[s]\n=k= = v":           {"=k=": "v"},
		"[s]\n==k== = v":         {"==k==": "v"},
		"[s]\nk=":                {"k": deleted},
		"[s]\nk =":               {"k": deleted},
		"[s]\nk = ":              {"k": deleted},
		"[s]\nk = ;":             {"k": deleted},
		"[s]\nk  =\t;":           {"k": deleted},
		"[s]\nk = ;v":            {"k": deleted},
		"[s]\nk=1\nk=":           {"k": deleted},
		"[s]\nk=\nk=1":           {"k": "1"},
		"[s]\nk=;":               {"k": ";"},
		"[s]\nk =;v;":            {"k": ";v;"},
		"[s]\nk = v;":            {"k": "v;"},
		"[s]\nk = v1;v2;v3":      {"k": "v1;v2;v3"},
		"[s]\nk = v1;v2\t;":      {"k": "v1;v2"},
		"[s]\nk = v1;v2 ;c1; c2": {"k": "v1;v2"},
		"[s]\nk1=v1\ngarbage\n= more garbage\nk2=v2":   {"k1": "v1", "k2": "v2"},
		"[s]\nk=one\n two\n\tthree ; c\nl=1":           {"k": "one two three", "l": "1"},
		"[s]\nk=one\n\n two":                           {"k": "one two"},
		"[s]\nk=one\ngarbage\n two":                    {"k": "one"},
		"[s]\nk=\n two":                                {"k": deleted},
		"[s]\n two\nk=1":                               {"k": "1"},
		"[s]\nk=1\n[s]\n two":                          {"k": "1"},
		"[s]\nhmac:_default = aGVsbG8=":                {"hmac:_default": "aGVsbG8="},
		"[s]\n/ = {couch_httpd, <<\"x\">>}":            {"/": `{couch_httpd, <<"x">>}`},
		"[s]\nhttp://a.example:80/b = /db; not a note": {"http://a.example:80/b": "/db; not a note"},
	} {
		var l Layer
		parseINI(text, &l)
		got := maps.Clone(l.Set["s"])
		for k := range l.Hidden["s"] {
			if got == nil {
				got = map[string]string{}
			}
			got[k] = deleted
		}
		if !maps.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var l Layer
	parseINI("[cors:http://a.example]\norigins=*\n[smoosh.ratio_dbs]\npriority=1", &l)
	if l.Set["cors:http://a.example"]["origins"] != "*" || l.Set["smoosh.ratio_dbs"]["priority"] != "1" {
		t.Errorf("sections with colons and dots: %v", l.Set)
	}
}

func FuzzParseINI(f *testing.F) {
	f.Add("[s]\nk = v ; c\n more\n[cors:http://a]\nx=\n", "[t]\r\nk==v")
	f.Fuzz(func(t *testing.T, one, two string) {
		var l Layer
		parseINI(one, &l)
		parseINI(two, &l)
		for section, keys := range l.Set {
			if section == "" || strings.Contains(section, "]") || len(keys) == 0 {
				t.Fatalf("section %q %v", section, keys)
			}
			for k, v := range keys {
				if k == "" || v == "" || strings.TrimSpace(v) != v || strings.TrimSpace(k) != k || l.Hidden[section][k] {
					t.Fatalf("[%s] %q = %q", section, k, v)
				}
				if strings.ContainsAny(k+v, "\n\r") || strings.Contains(v, " ;") {
					t.Fatalf("[%s] %q = %q", section, k, v)
				}
			}
		}
		build(merge(defaults(), l)) // any layer can be built
	})
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// CouchDB's etc directory is read in CouchDB's order; another directory by the
// names of its files.
func TestDirectories(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"default.ini":      "[s]\na=1\nb=1\nc=1\nd=1\ne=1\n",
		"default.d/10.ini": "[s]\nb=2\nc=2\nd=2\n",
		"local.ini":        "[s]\nc=3\nd=3\n",
		"local.d/20.ini":   "[s]\ne=\n",
		"local.d/10.ini":   "[s]\nd=4\ne=5\n",
		"local.d/README":   "[s]\na=wrong\n",
		"vm.args":          "-name x\n",
		"z.ini":            "[s]\na=wrong\n",
	})
	l, _, err := readFiles([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}; !maps.Equal(l.Set["s"], want) || !l.Hidden["s"]["e"] {
		t.Errorf("%v %v", l.Set["s"], l.Hidden)
	}
	l, _, err = readFiles([]string{filepath.Join(dir, "local.d"), filepath.Join(dir, "z.ini")})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "wrong", "d": "4"}; !maps.Equal(l.Set["s"], want) {
		t.Errorf("%v", l.Set["s"])
	}
	if _, _, err := readFiles([]string{filepath.Join(dir, "none.ini")}); err == nil {
		t.Error("a missing file is accepted")
	}
	files, err := expand(dir)
	if err != nil || len(files) != 5 || !slices.IsSortedFunc(files[3:], strings.Compare) {
		t.Errorf("%v, %v", files, err)
	}
}
