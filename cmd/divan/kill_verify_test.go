package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// verify compares the server with what its clients know, and takes over what
// has become of the requests that were under way.
func (w *world) verify() {
	w.t.Helper()
	for _, d := range w.docs {
		if err := w.verifyDocument(d); err != nil {
			w.t.Errorf("%s: %v", d.path(), err)
		}
	}
	for _, db := range []string{"one", "three"} {
		if err := w.verifyRevisions(db); err != nil {
			w.t.Errorf("%s: %v", db, err)
		}
		if err := w.verifyFeeds(db); err != nil {
			w.t.Errorf("%s: %v", db, err)
		}
	}
	for _, r := range w.registers {
		if err := r.verify(w); err != nil {
			w.t.Errorf("%s: %v", r.path, err)
		}
	}
	for _, d := range w.databases {
		if err := d.verify(w); err != nil {
			w.t.Errorf("%s: %v", d.name, err)
		}
	}
}

// verifyDocument looks at the winner of a document and its attachments.
func (w *world) verifyDocument(d *tracked) error {
	for rev, n := range d.branches {
		var got body
		status, err := w.client.call(http.MethodGet, d.path()+"?rev="+rev, nil, &got)
		if err != nil {
			return err
		}
		if status != http.StatusOK || got.N != n || got.Pad != pad(n) {
			return fmt.Errorf("branch %s is %d %+v, want n=%d", rev, status, got, n)
		}
	}
	if d.branches != nil {
		return nil
	}
	status, answer, err := w.client.do(http.MethodGet, d.path(), "", nil)
	if err != nil {
		return err
	}
	var got body
	if status == http.StatusOK {
		if err := json.Unmarshal(answer, &got); err != nil {
			return err
		}
	}
	switch {
	case d.state.is(status, string(answer), &got) && (d.state.rev == got.Rev || got.Rev == ""):
	case d.pending == nil || got.Rev != "" && got.Rev == d.state.rev || !d.pending.is(status, string(answer), &got):
		return fmt.Errorf("%d %s, acknowledged was %+v, under way %+v", status, short(answer), d.state, d.pending)
	default:
		if d.pending.purged {
			d.revs = nil
		}
		d.state = *d.pending
		if d.state.rev = got.Rev; d.state.deleted {
			if d.state.rev, err = w.tombstone(d); err != nil {
				return err
			}
		}
	}
	d.pending = nil
	for name, c := range d.state.atts {
		status, text, err := w.client.do(http.MethodGet, d.path()+"/"+name, "", nil)
		if err != nil {
			return err
		}
		if status != http.StatusOK || !bytes.Equal(text, c.bytes()) {
			return fmt.Errorf("attachment %s is %d, %d bytes, want %+v", name, status, len(text), c)
		}
	}
	return nil
}

// tombstone returns the revision of a deleted document, which a plain GET does
// not tell.
func (w *world) tombstone(d *tracked) (rev string, err error) {
	var page struct {
		Rows []struct {
			Value struct {
				Rev     string `json:"rev"`
				Deleted bool   `json:"deleted"`
			} `json:"value"`
		} `json:"rows"`
	}
	path := "/" + d.db + "/_all_docs"
	status, err := w.client.call(http.MethodPost, path, map[string][]string{"keys": {d.id}}, &page)
	if err = accepted(http.MethodPost, path, status, err); err != nil {
		return "", err
	}
	if len(page.Rows) != 1 || !page.Rows[0].Value.Deleted {
		return "", fmt.Errorf("a deleted document is listed as %+v", page.Rows)
	}
	return page.Rows[0].Value.Rev, nil
}

// is reports whether a document is what a state says, revision and content of
// attachments aside.
func (s *state) is(status int, answer string, got *body) bool {
	switch {
	case s.purged:
		return status == http.StatusNotFound && strings.Contains(answer, `"missing"`)
	case s.deleted:
		return status == http.StatusNotFound && strings.Contains(answer, `"deleted"`)
	case status != http.StatusOK || got.N != s.n || got.Pad != pad(s.n) || len(got.Attachments) != len(s.atts):
		return false
	}
	for name, c := range s.atts {
		if a := got.Attachments[name]; a.Length != c.size || a.ContentType != c.mediaType() {
			return false
		}
	}
	return true
}

func short(text []byte) []byte { return text[:min(len(text), 200)] }

// verifyRevisions asks which revisions a database does not have: none of those
// that were acknowledged, all of those that were purged.
func (w *world) verifyRevisions(db string) error {
	kept, purged := map[string][]string{}, map[string][]string{}
	for _, d := range w.docs {
		if d.db != db {
			continue
		}
		if len(d.revs) > 0 {
			kept[d.id] = d.revs
		}
		if len(d.gone) > 0 {
			purged[d.id] = d.gone
		}
	}
	missing, err := w.missing(db, kept)
	if err != nil {
		return err
	}
	for id, revs := range missing {
		return fmt.Errorf("%s: acknowledged revisions are lost: %v of %v", id, revs, kept[id])
	}
	if missing, err = w.missing(db, purged); err != nil {
		return err
	}
	for id, revs := range purged {
		if len(missing[id]) != len(revs) {
			return fmt.Errorf("%s: purged were %v, missing are only %v", id, revs, missing[id])
		}
	}
	return nil
}

func (w *world) missing(db string, revs map[string][]string) (map[string][]string, error) {
	var answer map[string]struct {
		Missing []string `json:"missing"`
	}
	status, err := w.client.call(http.MethodPost, "/"+db+"/_revs_diff", revs, &answer)
	if err = accepted(http.MethodPost, "_revs_diff", status, err); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for id, m := range answer {
		out[id] = m.Missing
	}
	return out, nil
}

// changes returns the feed since a sequence, one row a document.
func (w *world) changes(db, since string) ([]row, error) {
	var page changes
	path := "/" + db + "/_changes?style=all_docs&since=" + url.QueryEscape(since)
	status, err := w.client.call(http.MethodGet, path, nil, &page)
	return page.Results, accepted(http.MethodGet, path, status, err)
}

// verifyFeeds compares the feed with what clients have seen of it.
func (w *world) verifyFeeds(db string) error {
	all, err := w.changes(db, "0")
	if err != nil {
		return err
	}
	now := map[string]row{}
	for _, r := range all {
		if _, twice := now[r.ID]; twice {
			return fmt.Errorf("%s is twice in the feed", r.ID)
		}
		now[r.ID] = r
	}
	for _, s := range w.sightings {
		if s.db != db || len(s.rows) == 0 {
			continue
		}
		if err := w.verifyOrder(s, all, now); err != nil {
			return err
		}
		for _, at := range []int{w.rng.IntN(len(s.rows)), w.rng.IntN(len(s.rows)), len(s.rows) - 1} {
			if err := w.verifyResume(s, at, now); err != nil {
				return fmt.Errorf("feed resumed after row %d of %d: %w", at, len(s.rows), err)
			}
		}
	}
	return nil
}

// verifyOrder looks whether a sequence names the document that it named
// before. With one shard, sequences are numbers.
func (w *world) verifyOrder(s *sighting, all []row, now map[string]row) error {
	if s.db != "one" {
		return nil
	}
	bySeq := map[uint64]row{}
	for _, r := range all {
		bySeq[number(r.Seq)] = r
	}
	for _, seen := range s.rows {
		n := number(seen.Seq)
		if r, ok := bySeq[n]; ok {
			if r.ID != seen.ID || r.leaves() != seen.leaves() {
				return fmt.Errorf("sequence %d was %s %s, is %s %s", n, seen.ID, seen.leaves(), r.ID, r.leaves())
			}
			continue
		}
		if r, ok := now[seen.ID]; ok && number(r.Seq) < n {
			return fmt.Errorf("%s was seen at %d, is at %d", seen.ID, n, number(r.Seq))
		} else if !ok && !w.purgeable(s.db, seen.ID) {
			return fmt.Errorf("%s was seen at %d, is not in the feed", seen.ID, n)
		}
	}
	return nil
}

// purgeable reports whether a document may be gone.
func (w *world) purgeable(db, id string) bool {
	d := w.docs[db+"/"+id]
	return d != nil && d.state.purged
}

// number is the part of a sequence in front of its opaque part.
func number(seq string) uint64 {
	text, _, _ := strings.Cut(seq, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err) // every sequence begins with a number
	}
	return n
}

// verifyResume goes on behind a row: every change since then must come.
func (w *world) verifyResume(s *sighting, at int, now map[string]row) error {
	rest, err := w.changes(s.db, s.rows[at].Seq)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, r := range s.rows[:at+1] {
		known[r.ID] = r.leaves()
	}
	for _, r := range rest {
		known[r.ID] = r.leaves()
	}
	for id, r := range now {
		if known[id] != r.leaves() {
			return fmt.Errorf("%s has %s, the client knows %q", id, r.leaves(), known[id])
		}
	}
	return nil
}

// verify reads the number back.
func (r *register) verify(w *world) error {
	status, answer, err := w.client.do(http.MethodGet, r.path, "", nil)
	if err != nil {
		return err
	}
	n, err := r.parse(status, answer)
	if err != nil {
		return fmt.Errorf("%d %s: %w", status, answer, err)
	}
	if n != r.acked && (!r.pending || n != r.acked+1) {
		return fmt.Errorf("the value is %d, acknowledged was %d, pending: %v", n, r.acked, r.pending)
	}
	r.acked, r.pending = n, false
	return nil
}

func (r *register) parse(status int, answer []byte) (n int, err error) {
	text := string(bytes.TrimSpace(answer))
	switch {
	case status == http.StatusNotFound:
		return 0, nil
	case status != http.StatusOK:
		return 0, errors.New("it cannot be read")
	case strings.HasSuffix(r.path, "_limit"):
		n, err = strconv.Atoi(text)
		return n - limitBase, err
	case strings.HasSuffix(r.path, "_security"):
		var s security
		if err := json.Unmarshal(answer, &s); err != nil || len(s.Members.Names) == 0 {
			return 0, err
		}
		return strconv.Atoi(strings.TrimPrefix(s.Members.Names[0], "n"))
	case strings.Contains(r.path, "_config"):
		return strconv.Atoi(strings.Trim(text, `"`))
	}
	var got body
	err = json.Unmarshal(answer, &got)
	r.rev = got.Rev
	return got.N, err
}

// verify looks whether the database is there, with the documents that it has
// had since it was made.
func (d *toggled) verify(w *world) error {
	var info struct {
		Docs int `json:"doc_count"`
	}
	status, err := w.client.call(http.MethodGet, "/"+d.name, nil, &info)
	if status != http.StatusNotFound {
		err = accepted(http.MethodGet, d.name, status, err)
	}
	if err != nil {
		return err
	}
	var names []string
	if _, err := w.client.call(http.MethodGet, "/_all_dbs", nil, &names); err != nil {
		return err
	}
	got := existence{status == http.StatusOK, info.Docs}
	if got.exists != slices.Contains(names, d.name) {
		return fmt.Errorf("GET says %d, _all_dbs %v", status, names)
	}
	if got != d.state && (d.pending == nil || got != *d.pending) {
		return fmt.Errorf("it is %+v, acknowledged was %+v, under way %+v", got, d.state, d.pending)
	}
	d.state, d.pending = got, nil
	return nil
}
