package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
)

// body is the JSON of a document; all of it follows from n.
type body struct {
	ID          string            `json:"_id,omitempty"`
	Rev         string            `json:"_rev,omitempty"`
	Deleted     bool              `json:"_deleted,omitempty"`
	Revisions   *revisions        `json:"_revisions,omitempty"`
	Attachments map[string]inline `json:"_attachments,omitempty"`
	N           int               `json:"n,omitempty"`
	Pad         string            `json:"pad,omitempty"`
}

type revisions struct {
	Start int      `json:"start"`
	IDs   []string `json:"ids"`
}

type inline struct {
	ContentType string `json:"content_type"`
	Data        string `json:"data,omitempty"`
	Length      int    `json:"length,omitempty"`
}

func pad(n int) string { return strings.Repeat("x", n*37%3000) }

// result is what the server says of one edit.
type result struct {
	OK     bool   `json:"ok"`
	ID     string `json:"id"`
	Rev    string `json:"rev"`
	Error  string `json:"error"`
	Reason string `json:"reason"`
}

// accepted is an error unless the request was answered as it should be.
func accepted(method, path string, status int, err error) error {
	if err == nil && status != http.StatusCreated && status != http.StatusOK && status != http.StatusAccepted {
		err = fmt.Errorf("%s %s: %d", method, path, status)
	}
	return err
}

func (w *world) randomDocument(rng *rand.Rand, worker string) *tracked {
	return w.document([]string{"one", "three"}[rng.IntN(2)], fmt.Sprint(worker, rng.IntN(8)))
}

// next is an edit of a document, which is noted as pending.
func (d *tracked) next(rng *rand.Rand) body {
	if !d.state.purged && !d.state.deleted && rng.IntN(5) == 0 {
		d.pending = &state{n: d.state.n, deleted: true}
		return body{ID: d.id, Rev: d.state.rev, Deleted: true}
	}
	n := d.state.n + 1
	d.pending = &state{n: n}
	out := body{ID: d.id, N: n, Pad: pad(n)}
	if !d.state.deleted {
		out.Rev = d.state.rev
	}
	return out
}

// writer edits documents one by one.
func (w *world) writer(worker string) func(*rand.Rand) error {
	return func(rng *rand.Rand) error {
		d := w.randomDocument(rng, worker)
		edit := d.next(rng)
		method, path := http.MethodPut, d.path()
		var in any = edit
		if edit.Deleted {
			method, path, in = http.MethodDelete, path+"?rev="+edit.Rev, nil
		}
		var res result
		status, err := w.client.call(method, path, in, &res)
		if err = accepted(method, path, status, err); err != nil {
			return err
		}
		d.settle(res.Rev)
		w.ack()
		return nil
	}
}

// bulker edits several documents at once.
func (w *world) bulker(worker string) func(*rand.Rand) error {
	return func(rng *rand.Rand) error {
		db := []string{"one", "three"}[rng.IntN(2)]
		var docs []*tracked
		var in struct {
			Docs []body `json:"docs"`
		}
		for i := range 30 {
			if rng.IntN(2) == 0 {
				d := w.document(db, fmt.Sprint(worker, i))
				docs = append(docs, d)
				in.Docs = append(in.Docs, d.next(rng))
			}
		}
		var out []result
		status, err := w.client.call(http.MethodPost, "/"+db+"/_bulk_docs", in, &out)
		if err = accepted("POST", "_bulk_docs", status, err); err != nil {
			return err
		}
		if len(out) != len(docs) {
			return fmt.Errorf("_bulk_docs: %d answers to %d edits", len(out), len(docs))
		}
		for i, res := range out {
			if !res.OK || res.ID != docs[i].id {
				return fmt.Errorf("_bulk_docs: %+v", res)
			}
			docs[i].settle(res.Rev)
		}
		w.ack()
		return nil
	}
}

// attacher gives attachments to documents, in requests of their own and inside
// of documents.
func (w *world) attacher(worker string) func(*rand.Rand) error {
	return func(rng *rand.Rand) error {
		d := w.randomDocument(rng, worker)
		c := content{seed: uint64(rng.Uint32()), size: 1 + rng.IntN(2000), text: rng.IntN(2) == 0}
		name := fmt.Sprint("file", rng.IntN(3))
		next := state{n: d.state.n, atts: maps.Clone(d.state.atts)}
		if next.atts == nil {
			next.atts = map[string]content{}
		}
		path, contentType := d.path()+"/"+name+"?rev="+d.state.rev, c.mediaType()
		if d.state.purged {
			path = d.path() + "/" + name
		}
		way := rng.IntN(3)
		if way == 1 {
			c.size = 64<<10 + rng.IntN(300<<10)
		}
		text := c.bytes()
		if way == 0 {
			next = state{n: d.state.n + 1, atts: map[string]content{}}
			path, contentType = d.path(), "application/json"
			var err error
			text, err = json.Marshal(body{Rev: d.state.rev, N: next.n, Pad: pad(next.n), Attachments: map[string]inline{
				name: {ContentType: c.mediaType(), Data: base64.StdEncoding.EncodeToString(c.bytes())},
			}})
			if err != nil {
				return err
			}
		}
		next.atts[name] = c
		d.pending = &next
		status, answer, err := w.client.do(http.MethodPut, path, contentType, text)
		if err = accepted(http.MethodPut, path, status, err); err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}
		var res result
		if err := json.Unmarshal(answer, &res); err != nil {
			return err
		}
		d.settle(res.Rev)
		w.ack()
		return nil
	}
}

// purger writes documents and purges them.
func (w *world) purger(worker string) func(*rand.Rand) error {
	write := w.writer(worker)
	return func(rng *rand.Rand) error {
		if rng.IntN(2) == 0 {
			return write(rng)
		}
		d := w.randomDocument(rng, worker)
		if d.state.purged {
			return nil
		}
		d.pending = &state{n: d.state.n, purged: true}
		var res struct {
			Purged map[string][]string `json:"purged"`
		}
		status, err := w.client.call(http.MethodPost, "/"+d.db+"/_purge", map[string][]string{d.id: {d.state.rev}}, &res)
		if err = accepted("POST", "_purge", status, err); err != nil {
			return err
		}
		if got := res.Purged[d.id]; len(got) != 1 || got[0] != d.state.rev {
			return fmt.Errorf("_purge of %s: %v", d.state.rev, res)
		}
		d.settle("")
		w.ack()
		return nil
	}
}

// replicator writes revisions that were made elsewhere.
func (w *world) replicator(worker string) func(*rand.Rand) error {
	return func(rng *rand.Rand) error {
		db := []string{"one", "three"}[rng.IntN(2)]
		type edits struct {
			NewEdits bool   `json:"new_edits"`
			Docs     []body `json:"docs"`
		}
		in := edits{}
		for range 1 + rng.IntN(10) {
			parent, id, n := rng.Uint64(), rng.Uint64(), rng.IntN(1000)+1
			in.Docs = append(in.Docs, body{
				ID: fmt.Sprint(worker, rng.IntN(5)), Rev: fmt.Sprintf("2-%032x", id), N: n, Pad: pad(n),
				Revisions: &revisions{2, []string{fmt.Sprintf("%032x", id), fmt.Sprintf("%032x", parent)}},
			})
		}
		var out []result
		status, err := w.client.call(http.MethodPost, "/"+db+"/_bulk_docs", in, &out)
		if err = accepted("POST", "_bulk_docs", status, err); err != nil {
			return err
		}
		if len(out) > 0 {
			return fmt.Errorf("_bulk_docs: %+v", out)
		}
		for _, b := range in.Docs {
			d := w.document(db, b.ID)
			if d.branches == nil {
				d.branches = map[string]int{}
			}
			d.branches[b.Rev] = b.N
		}
		w.ack()
		return nil
	}
}

// compact compacts a database and waits until that is over.
func (w *world) compact(rng *rand.Rand) error {
	path := []string{"/one", "/three"}[rng.IntN(2)]
	status, err := w.client.call(http.MethodPost, path+"/_compact", struct{}{}, nil)
	for err = accepted("POST", "_compact", status, err); err == nil && !w.dead.Load(); {
		var info struct {
			Running bool `json:"compact_running"`
		}
		if _, err = w.client.call(http.MethodGet, path, nil, &info); err == nil && !info.Running {
			return nil
		}
	}
	return err
}

// row is one line of a changes feed.
type row struct {
	Seq     string `json:"seq"`
	ID      string `json:"id"`
	Changes []struct {
		Rev string `json:"rev"`
	} `json:"changes"`
}

// leaves is what a row says of its document.
func (r row) leaves() string {
	var revs []string
	for _, c := range r.Changes {
		revs = append(revs, c.Rev)
	}
	return strings.Join(revs, " ")
}

// sighting is what one client has seen of a feed that began with the first
// change.
type sighting struct {
	db   string
	rows []row
}

// follower reads changes as they come.
func (w *world) follower(db, feed string) func(*rand.Rand) error {
	return func(*rand.Rand) error {
		s := &sighting{db: db}
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sightings = append(w.sightings, s)
		}()
		if feed == "continuous" {
			return w.followContinuous(s)
		}
		for since := "0"; ; {
			var page changes
			path := "/" + db + "/_changes?feed=longpoll&style=all_docs&heartbeat=5000&since=" + since
			status, err := w.client.call(http.MethodGet, path, nil, &page)
			if err = accepted(http.MethodGet, path, status, err); err != nil {
				return err
			}
			s.rows = append(s.rows, page.Results...)
			since = page.LastSeq
		}
	}
}

// changes is the answer of a feed that ends.
type changes struct {
	Results []row  `json:"results"`
	LastSeq string `json:"last_seq"`
}

func (w *world) followContinuous(s *sighting) error {
	path := w.client.base + "/" + s.db + "/_changes?feed=continuous&style=all_docs&heartbeat=5000&since=0"
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	res, err := w.client.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	for in := bufio.NewReader(res.Body); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("continuous: %w", err)
		}
		if len(line) <= 2 {
			continue
		}
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("continuous: %s: %w", line, err)
		}
		s.rows = append(s.rows, r)
	}
}

// register is a number that is kept somewhere; it only grows.
type register struct {
	path    string
	rev     string // of a local document
	acked   int
	pending bool // the next number is under way
}

// limitBase is what the limits of a database are to begin with.
const limitBase = 1000

func (r *register) write(w *world) error {
	n := r.acked + 1
	var in any
	switch {
	case strings.HasSuffix(r.path, "_limit"):
		in = limitBase + n
	case strings.HasSuffix(r.path, "_security"):
		in = security{members{Names: []string{fmt.Sprint("n", n)}, Roles: []string{"_admin"}}}
	case strings.Contains(r.path, "_config"):
		in = fmt.Sprint(n)
	default:
		in = body{Rev: r.rev, N: n}
	}
	r.pending = true
	status, answer, err := w.client.do(http.MethodPut, r.path, "application/json", marshal(in))
	if err = accepted(http.MethodPut, r.path, status, err); err != nil {
		return err
	}
	if strings.Contains(r.path, "_local/counter") {
		var res result
		if err := json.Unmarshal(answer, &res); err != nil {
			return err
		}
		r.rev = res.Rev
	}
	r.acked, r.pending = n, false
	w.ack()
	return nil
}

type security struct {
	Members members `json:"members"`
}

type members struct {
	Names []string `json:"names"`
	Roles []string `json:"roles"`
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of these tests
	}
	return text
}

// existence is what a database is that comes and goes.
type existence struct {
	exists bool
	docs   int
}

// toggled is a database that comes and goes.
type toggled struct {
	name    string
	state   existence
	pending *existence
}

func (d *toggled) worker(w *world) func(*rand.Rand) error {
	return func(rng *rand.Rand) error {
		method, path, next := http.MethodPut, "/"+d.name, existence{exists: true}
		switch {
		case !d.state.exists:
		case rng.IntN(3) == 0:
			method, next = http.MethodDelete, existence{}
		default:
			path += fmt.Sprint("/doc", d.state.docs)
			next.docs = d.state.docs + 1
		}
		d.pending = &next
		var in any
		if next.docs > 0 {
			in = struct{}{}
		}
		status, err := w.client.call(method, path, in, nil)
		if err = accepted(method, path, status, err); err != nil {
			return err
		}
		d.state, d.pending = next, nil
		w.ack()
		return nil
	}
}
