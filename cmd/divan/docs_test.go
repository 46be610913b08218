package main

import (
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
