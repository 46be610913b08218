package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"divan"
)

var keepRelease = flag.Bool("keep-release", false, "write what this release leaves into testdata/releases")

// releases is where a data directory of each release is kept, with the answers that it gave.
const releases = "testdata/releases"

// fillRelease makes one of everything that a data directory holds.
func fillRelease(t *testing.T, c *client) {
	t.Helper()
	c.want(t, "PUT", "/pond?q=2", "", 201)
	c.want(t, "PUT", "/team%2Fparted?q=1&partitioned=true", "", 201)
	c.want(t, "PUT", "/small?q=1", "", 201)
	c.want(t, "PUT", "/gone", "", 201)
	c.want(t, "DELETE", "/gone", "", 200)
	c.want(t, "PUT", "/gone", "", 201)
	c.want(t, "PUT", "/pond/_design/app", `{
		"views":{"n":{"map":"function(d){if(d.n!==undefined){emit(d.n,d.kind);}}","reduce":"_count"}},
		"indexes":{"text":{"index":"function(d){if(d.text){index('default',d.text,{store:true});}}"}},
		"updates":{"touch":"function(d,r){return [null,'touched'];}"}
	}`, 201)
	c.want(t, "POST", "/pond/_index", `{"index":{"fields":["kind","n"]},"ddoc":"by-kind","name":"kind"}`, 200)
	for i := range 80 { // with which the copies are no small ones any more
		c.want(t, "PUT", fmt.Sprintf("/pond/frog%02d", i),
			fmt.Sprintf(`{"n":%d,"kind":"%c","text":"the frog of pond %d","pad":"%s"}`, i, 'a'+rune(i%3), i, strings.Repeat("water ", 100)), 201)
	}
	c.want(t, "PUT", "/small/one", `{"n":1}`, 201)
	c.want(t, "PUT", "/small/_local/note", `{"here":true}`, 201)
	c.want(t, "PUT", "/team%2Fparted/p:1", `{"n":1}`, 201)
	c.want(t, "PUT", "/team%2Fparted/q:1", `{"n":2}`, 201)

	// A history that lies in blocks, a conflict, a deletion, a purge.
	rev := func(answer string) string {
		var d struct {
			Rev string `json:"rev"`
		}
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			t.Fatal(err)
		}
		return d.Rev
	}
	last := rev(c.want(t, "PUT", "/pond/long", `{}`, 201))
	for i := range 120 {
		last = rev(c.want(t, "PUT", "/pond/long?rev="+last, fmt.Sprintf(`{"edit":%d}`, i), 201))
	}
	c.want(t, "POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[
		{"_id":"split","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"side":"b"},
		{"_id":"split","_rev":"2-c","_revisions":{"start":2,"ids":["c","a"]},"side":"c"}]}`, 201)
	c.want(t, "DELETE", "/pond/frog07?rev="+rev(c.want(t, "PUT", "/pond/frog07?rev="+revOf(t, c, "/pond/frog07"), `{}`, 201)), "", 200)
	purged := revOf(t, c, "/pond/frog08")
	c.want(t, "POST", "/pond/_purge", fmt.Sprintf(`{"frog08":[%q]}`, purged), 201)
	c.want(t, "PUT", "/pond/with/leaf.txt", "green green green", 201)
	stone := bytes.Repeat([]byte("stone"), 80_000) // more than one chunk
	if status, answer, err := c.do("PUT", "/pond/with/stone.png?rev="+revOf(t, c, "/pond/with"), "image/png", stone); err != nil || status != 201 {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	c.want(t, "PUT", "/pond/_security", `{"members":{"names":["ann"]}}`, 200)
	c.want(t, "PUT", "/small/_revs_limit", "7", 200)
	c.want(t, "PUT", "/small/_purged_infos_limit", "9", 200)
	c.want(t, "PUT", "/_node/_local/_config/mine/a", `"b"`, 200)
	c.want(t, "PUT", "/_users/org.couchdb.user:ann", `{"name":"ann","password":"x","roles":[],"type":"user"}`, 201)
}

// readRelease returns the answers that later releases have to give as well, by their requests.
// The indexes are read as they are.
func readRelease(t *testing.T, c *client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range []string{
		"/_all_dbs", "/pond/_all_docs?include_docs=true&conflicts=true&attachments=true", "/pond/long?revs=true", "/pond/split?conflicts=true&revs=true", "/pond/split?rev=2-b&revs=true",
		"/pond/with/leaf.txt", "/small/_all_docs?include_docs=true", "/small/_local/note", "/small/_revs_limit", "/small/_purged_infos_limit",
		"/gone/_all_docs", "/team%2Fparted/_partition/p/_all_docs?include_docs=true", "/pond/_security", "/pond/_purged_infos",
		"/_node/_local/_config/mine/a", "/_users/org.couchdb.user:ann", "/pond/_index",
		"/pond/_design/app/_view/n?update=false&group=true", "/pond/_design/app/_view/n?update=false&reduce=false",
		`/pond/_design/app/_search/text?q=frog&limit=5&sort=%22_score%22&update=false`,
	} {
		out[path] = c.want(t, "GET", path, "", 200)
	}
	out["find"] = c.want(t, "POST", "/pond/_find", `{"selector":{"kind":"b","n":{"$gt":-1}},"fields":["_id","n"],"update":false,"use_index":"by-kind"}`, 200)
	return out
}

// lasting returns an answer without its bookmark, which need not stay as it was.
func lasting(answer string) string {
	var v map[string]any
	if json.Unmarshal([]byte(answer), &v) != nil {
		return answer
	}
	delete(v, "bookmark")
	text, err := json.Marshal(v)
	if err != nil {
		return answer
	}
	return string(text)
}

// since is the request for what has changed after an answer of _changes.
func since(t *testing.T, answer string) string {
	t.Helper()
	var v struct {
		LastSeq string `json:"last_seq"`
	}
	if err := json.Unmarshal([]byte(answer), &v); err != nil || v.LastSeq == "" {
		t.Fatal(answer, err)
	}
	return "/pond/_changes?since=" + url.QueryEscape(v.LastSeq)
}

// TestReleases: what each release has left is served by this one, with its indexes, and has all
// that it had; the metadata also when they are made again from the copy of their state. A release
// is kept by -keep-release, in the commit that raises VERSION, and again when a format changes
// before it is out.
func TestReleases(t *testing.T) {
	t.Parallel()
	if *keepRelease {
		keep(t)
	}
	archives, err := filepath.Glob(filepath.Join(releases, "*.tar.gz"))
	if err != nil || !slices.Contains(archives, archiveOfRelease()) {
		t.Fatalf("%s is not kept: run this test with -keep-release (%v)", divan.Release(), err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), "tar", "xzf", archive, "-C", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(filepath.Join(dir, "answers.json"))
			var want map[string]string
			if err = errors.Join(err, json.Unmarshal(text, &want)); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(dir, "data")
			checkDirectory(t, data)
			for _, step := range []string{"as it is", "recovered", "last"} {
				last := step == "last"
				if step == "recovered" {
					if err := os.RemoveAll(filepath.Join(data, "meta")); err != nil {
						t.Fatal(err)
					}
					if status, out := run(t, nil, "recover", data); status != 0 {
						t.Fatalf("recover: exit status %d, %s", status, out)
					}
				}
				p := startServer(t, adminEnviron(), "--data", data)
				c := newClient(t, p.address)
				got := readRelease(t, c)
				for _, request := range slices.Sorted(maps.Keys(got)) {
					if lasting(got[request]) != lasting(want[request]) {
						t.Errorf("%s, %s:\n%s\nwas\n%s", step, request, got[request], want[request])
					}
				}
				goOn := since(t, want["changes"])
				if later := c.want(t, "GET", goOn, "", 200); strings.Contains(later, `"id"`) {
					t.Errorf("since the last change: %s", later)
				}
				if last {
					c.want(t, "PUT", "/pond/after", `{"n":99,"kind":"b"}`, 201)
					c.want(t, "PUT", "/pond/long?rev="+revOf(t, c, "/pond/long"), `{"edit":"after"}`, 201)
					c.want(t, "PUT", "/new/", "", 201)
					if later := c.want(t, "GET", goOn, "", 200); strings.Count(later, `"id"`) != 2 {
						t.Errorf("after two edits: %s", later)
					}
					if rows := c.want(t, "GET", "/pond/_design/app/_view/n?reduce=false&key=99", "", 200); !strings.Contains(rows, `"after"`) {
						t.Errorf("the view has %s", rows)
					}
				}
				p.stop()
				checkDirectory(t, data)
			}
		})
	}
}

// archiveOfRelease returns where the data directory of this release is kept.
func archiveOfRelease() string { return filepath.Join(releases, divan.Release()+".tar.gz") }

// keep writes the data directory of this release, in place of the one that is kept only as long as
// the release is not out.
func keep(t *testing.T) {
	t.Helper()
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(changes), "\n## "+divan.Release()+" (not released yet)\n") {
		t.Fatalf("CHANGELOG.md does not say that %s is not released yet", divan.Release())
	}
	dir := t.TempDir()
	p := startServer(t, adminEnviron(), "--data", filepath.Join(dir, "data"))
	c := newClient(t, p.address)
	fillRelease(t, c)
	c.want(t, "GET", "/pond/_design/app/_view/n", "", 200)
	c.want(t, "GET", "/pond/_design/app/_search/text?q=frog", "", 200)
	c.want(t, "POST", "/pond/_find", `{"selector":{"kind":"b","n":{"$gt":-1}},"use_index":"by-kind"}`, 200)
	answers := readRelease(t, c)
	answers["changes"] = c.want(t, "GET", "/pond/_changes", "", 200)
	p.stop()
	text, err := json.MarshalIndent(answers, "", "\t")
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "answers.json"), text, 0o600), os.MkdirAll(releases, 0o750))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "czf", archiveOfRelease(), "-C", dir, "answers.json", "data").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
