package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// What was meant to be a setting and is none is told, without its text.
func TestOddSettingsAreTold(t *testing.T) {
	file := writeFiles(t, map[string]string{
		"a.ini": "port = 1\n; comment\n[chttpd\n\n[admins]\nroot hunter2\n=\n\tmore\nanna = x\n  y\nb =\n",
		"b.ini": "[s]\nk=v\n",
	})
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"file":             {Options{Files: []string{file}}, []string{"a.ini [1 3 6 7 8]"}},
		"user alone":       {Options{Environ: []string{"COUCHDB_USER=root"}}, []string{"COUCHDB_USER there is no COUCHDB_PASSWORD"}},
		"empty password":   {Options{Environ: []string{"COUCHDB_USER=root", "COUCHDB_PASSWORD="}}, []string{"COUCHDB_USER there is no COUCHDB_PASSWORD"}},
		"password alone":   {Options{Environ: []string{"COUCHDB_PASSWORD=x"}}, []string{"COUCHDB_PASSWORD there is no COUCHDB_USER"}},
		"no section":       {Options{Environ: []string{"DIVAN_PORT=1", "DIVAN___Y=1"}}, []string{"DIVAN_PORT it is not", "DIVAN___Y it is not"}},
		"no key":           {Options{Environ: []string{"DIVAN_CHTTPD__=1", "DIVAN_"}}, []string{"DIVAN_CHTTPD__ it is not", "DIVAN_ it is not"}},
		"nothing to tell":  {Options{Environ: []string{"DIVAN_MINE__K=v", "DIVAN_A__B__C=v", "DIVANS=1", "COUCHDB_USER=a", "COUCHDB_PASSWORD=b"}}, nil},
		"of nobody at all": {Options{Environ: []string{"COUCHDB_USER=", "COUCHDB_PASSWORD="}}, nil},
	} {
		core, logs := observer.New(zapcore.WarnLevel)
		c.options.Logger = zap.New(core)
		newHolder(t, c.options)
		var got []string
		for _, e := range logs.All() {
			f := e.ContextMap()
			if strings.HasPrefix(e.Message, "setting has no effect") {
				continue // TestIneffectiveFilesAreTold
			}
			if path, ok := f["file"].(string); ok {
				got = append(got, fmt.Sprint(filepath.Base(path), " ", f["lines"]))
				continue
			}
			_, why, _ := strings.Cut(e.Message, ", ")
			got = append(got, fmt.Sprint(f["variable"], " ", why))
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	var l Layer
	if odd := parseINI(strings.Repeat("x\n", 1000), &l); len(odd) != maxOdd {
		t.Errorf("%d lines are named", len(odd))
	}
}
