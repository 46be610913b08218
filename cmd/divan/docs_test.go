package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"divan/cluster/config"
)

// setting is a row of docs/configuration.md.
type setting struct{ section, key, value string }

var (
	heading = regexp.MustCompile(`^(?:### |\| \*\*)([a-z_]+)`)
	quoted  = regexp.MustCompile("`([^`]+)`")
	reading = regexp.MustCompile(`r\.(?:text|oneOf|boolean|integer|count|duration|float|list|lookup)\([^,]+, "([^"]+)"|ms\("([^"]+)"|const s, key(?:, want)? = "[^"]+", "([^"]+)"`)
)

// documented reads docs/configuration.md: the rows of its tables, and all text
// between backticks.
func documented(t *testing.T) (rows []setting, words []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			words = append(words, m[1])
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		keys, values := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		for i, k := range keys {
			row := setting{section: section, key: k[1]}
			if len(keys) == len(values) {
				row.value = values[i][1]
			}
			rows = append(rows, row)
		}
	}
	return rows, words
}

// TestSettingsAreDocumented looks for every key that the configuration reads.
func TestSettingsAreDocumented(t *testing.T) {
	_, words := documented(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "cluster", "config", "sections_*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reading.FindAllStringSubmatch(string(text), -1) {
			key := m[1] + m[2] + m[3]
			found++
			if !slices.Contains(words, key) {
				t.Errorf("%s reads %s, which docs/configuration.md does not name", filepath.Base(f), key)
			}
		}
	}
	if found < 90 {
		t.Errorf("only %d keys found: the pattern no longer fits the code", found)
	}
}

// TestTextSettingsAreEffective looks for settings that are read as text: setting them must not warn.
func TestTextSettingsAreEffective(t *testing.T) {
	get := regexp.MustCompile(`\.Get\("([a-z_]+)", "([A-Za-z_-]+)"\)`)
	found := 0
	for _, pattern := range []string{"*/*.go", "*/*/*.go", "*/*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil || strings.HasSuffix(f, "_test.go") {
				continue
			}
			for _, m := range get.FindAllStringSubmatch(string(text), -1) {
				found++
				if !config.Effective(m[1], m[2]) {
					t.Errorf("%s reads [%s] %s, which config.Effective does not know", f, m[1], m[2])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d found", found)
	}
}

// TestDocumentedDefaults sets every key to the default that is documented:
// nothing may change. Values that no key accepts must be noticed.
func TestDocumentedDefaults(t *testing.T) {
	rows, _ := documented(t)
	def := reflect.ValueOf(*config.Default())
	checked := 0
	for _, row := range rows {
		if row.section == "" || row.value == "" || row.section == "couchdb" && row.key == "single_node" || strings.HasPrefix(row.value, "-") {
			continue // made by the node, or an abbreviation
		}
		checked++
		if err := config.Check(row.section, row.key, row.value); err != nil {
			t.Errorf("[%s] %s = %s: %v", row.section, row.key, row.value, err)
		}
		got := reflect.ValueOf(*config.FromValues(config.Values{row.section: {row.key: row.value}}))
		for i := range def.NumField() {
			if f := def.Type().Field(i); f.IsExported() && !reflect.DeepEqual(got.Field(i).Interface(), def.Field(i).Interface()) {
				t.Errorf("[%s] %s: %s is not the default: %s is %+v, want %+v", row.section, row.key, row.value, f.Name,
					got.Field(i).Interface(), def.Field(i).Interface())
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d defaults found", checked)
	}
}

// describe has TestDescriptions write the file.
var describe = flag.Bool("describe", false, "write cluster/config/described.txt")

// TestDescriptions: what GET /_node/{name}/_settings tells of a setting is what the
// documentation says.
func TestDescriptions(t *testing.T) {
	path := filepath.Join("..", "..", "cluster", "config", "described.txt")
	want := strings.Join(descriptions(t), "")
	if *describe {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what docs/configuration.md says: go test -run TestDescriptions ./cmd/divan -describe", path)
	}
	if n := strings.Count(want, "\n"); n < 200 {
		t.Errorf("only %d settings found", n)
	}
}

// descriptions are the lines of the tables of docs/configuration.md, one for each key.
func descriptions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables, idle, _ := strings.Cut(string(text), "Known, checked when they are set, and without effect today:")
	section, lines := "", map[[2]string]string{}
	add := func(key, value, meaning string) {
		lines[[2]string{section, key}] = strings.Join([]string{section, key, value, meaning}, "\t") + "\n"
	}
	for line := range strings.Lines(tables) {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) < 5 || section == "" {
			continue
		}
		keys := quoted.FindAllStringSubmatch(cells[1], -1)
		for i, value := range defaultsOf(cells[2], len(keys)) {
			add(keys[i][1], value, plain(strings.Join(cells[3:len(cells)-1], "|")))
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(idle, -1) {
		if name, is := strings.CutPrefix(m[1], "["); is {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		add(m[1], "", "known, and without effect today")
	}
	keys := slices.SortedFunc(maps.Keys(lines), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, lines[k])
	}
	return out
}

// defaultsOf takes a cell with the defaults of so many keys apart. One that begins with
// a dash has the beginning of the first.
func defaultsOf(cell string, keys int) []string {
	var values []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		values = append(values, m[1])
	}
	if parts := strings.Split(plain(cell), ", "); len(values) != keys && len(parts) == keys {
		values = parts
	} else if len(values) != keys {
		values = slices.Repeat([]string{plain(cell)}, keys)
	}
	for i, v := range values {
		if strings.HasPrefix(v, "-") && len(v) > 2 {
			values[i] = values[0][:strings.LastIndexByte(values[0], '-')] + v
		}
	}
	return values
}

// plain drops the marks of Markdown.
func plain(cell string) string {
	return strings.TrimSpace(strings.ReplaceAll(link.ReplaceAllString(cell, "$1"), "`", ""))
}

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
