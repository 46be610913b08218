package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
	"divan/reshard"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// json asks and reads the answer.
func (h *home) json(path string, out any) {
	h.town.t.Helper()
	text := h.ask("GET", path, "")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), out); err != nil {
		h.town.t.Errorf("%s: GET %s: %s", h.name, path, text)
	}
}

// split splits all shards of a database and waits until that is done.
func (h *home) split(db string, during func()) {
	h.town.t.Helper()
	h.reshard(db, `{"type":"split","db":"`+db+`"}`, during)
}

// reshard makes jobs for a database and waits until they are complete.
func (h *home) reshard(db, body string, during func()) {
	h.town.t.Helper()
	h.want("POST", "/_reshard/jobs", body, "201")
	during()
	h.town.eventually("the jobs are complete", func() bool {
		return !slices.ContainsFunc(h.node.resharder.Table().Jobs(), func(j *job.Job) bool { return j.Database == db && j.State != job.Completed })
	})
}

// wantClean checks that nothing of a split is left: each node has the copies of the map, all of
// them full, none beside another one of the same documents.
func (w *town) wantClean(db string) {
	w.t.Helper()
	for _, h := range w.homes {
		var names, wanted []string
		w.eventually(h.name+" has the copies of the map", func() bool {
			m, ok := h.node.meta.Database(db)
			all, err := h.node.local.Copies.Names()
			if err != nil {
				w.t.Fatal(err)
			}
			names = slices.DeleteFunc(all, func(name string) bool { return !strings.Contains(name, "/"+db+".") })
			if wanted = nil; !ok {
				return len(names) == 0
			}
			wanted = slices.Sorted(slices.Values(m.CopiesOn(h.name)))
			if h.killed { // a copy that had just left may be on the disk for an hour, as any that the map does not have
				names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(wanted, name) })
			}
			return slices.Equal(names, wanted) && !slices.ContainsFunc(m.Shards, func(s ring.Shard) bool { return len(s.Full()) < len(s.Copies) })
		})
		for i, name := range wanted[min(1, len(wanted)):] {
			one, _, _, _ := ring.ParseCopyName(wanted[i])
			two, _, _, _ := ring.ParseCopyName(name)
			if one.Overlaps(two) {
				w.t.Errorf("%s has %s and %s", h.name, one, two)
			}
		}
	}
}

// writing is clients that write, each its own documents, and what was acknowledged.
type writing struct {
	town *town
	db   string
	stop chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex
	revs   map[string]string // by document
	unsure map[string]bool   // documents whose last edit has got no answer
}

func (w *town) write(db string, clients int) *writing {
	wr := &writing{town: w, db: db, stop: make(chan struct{}), revs: map[string]string{}, unsure: map[string]bool{}}
	for c := range clients {
		wr.all.Go(func() { wr.run(c) })
	}
	return wr
}

func (wr *writing) run(c int) {
	for n := 1; ; n++ {
		wr.put(fmt.Sprintf("w%d-%d", c, n%12), n, wr.town.homes[1+n%3])
		select {
		case <-wr.stop:
			return
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// put writes a document that has no other writer; one whose answer is lost is read first.
func (wr *writing) put(id string, n int, through *home) {
	wr.mu.Lock()
	rev := wr.revs[id]
	wr.mu.Unlock()
	body := fmt.Sprintf(`{"n":%d}`, n)
	if rev != "" {
		body = fmt.Sprintf(`{"_rev":%q,"n":%d}`, rev, n)
	}
	status, text, _ := strings.Cut(through.ask("PUT", "/"+wr.db+"/"+id, body), " ")
	var out struct {
		Rev string `json:"rev"`
		Own string `json:"_rev"`
	}
	if status == "409" { // an attempt without an answer has made it
		_, text, _ = strings.Cut(through.ask("GET", "/"+wr.db+"/"+id+"?r=3", ""), " ")
	}
	answered := json.Unmarshal([]byte(text), &out) == nil && out.Rev+out.Own != ""
	wr.mu.Lock()
	defer wr.mu.Unlock()
	if wr.unsure[id] = !answered; answered {
		wr.revs[id] = out.Rev + out.Own
	}
}

// end ends the writing and returns what is there: an edit without an answer may be.
func (wr *writing) end() map[string]string {
	close(wr.stop)
	wr.all.Wait()
	for id, unsure := range wr.unsure {
		if unsure {
			wr.put(id, 0, wr.town.homes[1])
		}
	}
	return wr.revs
}

// following is a continuous feed and the last revision that it has shown of each document. As
// the client of a replicator it goes on from the last sequence when the feed breaks off.
type following struct {
	home   *home
	db     string
	cancel context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	revs   map[string]string
	last   string // sequence
	breaks []string
}

func (h *home) follow(db string) *following {
	ctx, cancel := context.WithCancel(h.town.t.Context())
	f := &following{home: h, db: db, cancel: cancel, ended: make(chan struct{}), revs: map[string]string{}, last: "0"}
	go func() {
		defer close(f.ended)
		for ctx.Err() == nil {
			if err := f.connect(ctx); err != nil && ctx.Err() == nil {
				f.breaks = append(f.breaks, err.Error())
			}
			<-time.After(100 * time.Millisecond)
		}
	}()
	return f
}

func (f *following) connect(ctx context.Context) error {
	path := fmt.Sprintf("http://10.0.0.%d:5984/%s/_changes?feed=continuous&heartbeat=5000&since=%s", f.home.i, f.db, url.QueryEscape(f.last))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth("adm", "pass")
	res, err := (&http.Client{Transport: f.home.town.client.Transport}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return f.read(res.Body)
}

// change is a row of a feed.
type change struct {
	Seq     string `json:"seq"`
	ID      string `json:"id"`
	Changes []struct {
		Rev string `json:"rev"`
	} `json:"changes"`
}

func (f *following) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var row change
		if json.Unmarshal(lines.Bytes(), &row) != nil || len(row.Changes) == 0 {
			return fmt.Errorf("it ends with %s", lines.Text())
		}
		f.mu.Lock()
		f.revs[row.ID], f.last = row.Changes[0].Rev, row.Seq
		f.mu.Unlock()
	}
	return lines.Err()
}

// lacks returns the documents whose last revision the feed has not shown.
func (f *following) lacks(revs map[string]string) (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, rev := range revs {
		if f.revs[id] != rev {
			out = append(out, id+" "+rev+" not "+f.revs[id])
		}
	}
	return out
}

// rowOfRev is a row of a listing with a revision.
type rowOfRev struct {
	ID    string `json:"id"`
	Value struct {
		Rev string `json:"rev"`
	} `json:"value"`
}

// wantAll checks by all ways to read that documents are there, each once.
func (h *home) wantAll(db string, revs map[string]string) {
	h.town.t.Helper()
	for id, rev := range revs {
		h.want("GET", "/"+db+"/"+id+"?r=3", "", `200 {"_id":"`+id+`","_rev":"`+rev+`"`)
	}
	var docs, rows struct {
		Rows []rowOfRev `json:"rows"`
	}
	h.json("/"+db+"/_all_docs", &docs)
	h.json("/"+db+"/_design/v/_view/v", &rows)
	all := slices.DeleteFunc(docs.Rows, func(r rowOfRev) bool { return strings.HasPrefix(r.ID, "_design/") })
	if len(all) != len(revs) || !slices.Equal(all, rows.Rows) {
		h.town.t.Errorf("%s: %d documents, %d rows, want %d", h.name, len(all), len(rows.Rows), len(revs))
	}
	for _, r := range all {
		if revs[r.ID] != r.Value.Rev {
			h.town.t.Errorf("%s: %s is %s, want %s", h.name, r.ID, r.Value.Rev, revs[r.ID])
		}
	}
}

// pushed is enough for what a node has missed while it was away to come to it, and for what it has accepted alone (202)
// to come to others.
const pushed = 10 * time.Second

const viewOfRevs = `{"views":{"v":{"map":"function (doc) { emit(doc._id, {rev: doc._rev}); }"}}}`

// All copies of a shard are split, and what comes out is split again, while clients write,
// feeds go on, and a node is killed or cut off meanwhile.
func TestSplitWhileInUse(t *testing.T) {
	for _, how := range someOf([]string{"killed", "cut off"}, 1) {
		t.Run(how, func(t *testing.T) {
			inTown(t, func(w *town) {
				a, b, c := w.seeded()
				a.want("PUT", "/pond?q=1&n=3", "", "201")
				a.want("PUT", "/pond/_design/v", viewOfRevs, "201")
				for i := range 20 {
					a.want("PUT", fmt.Sprintf("/pond/_local/l%d", i), `{"n":1}`, "201")
					a.want("PUT", fmt.Sprintf("/pond/a%d/note", i), fmt.Sprint("content ", i), "201")
				}
				var before, after struct {
					Last    string   `json:"last_seq"`
					Results []change `json:"results"`
				}
				a.json("/pond/_changes", &before)
				feed := a.follow("pond")
				writing := w.write("pond", 3)
				for range 2 {
					c.split("pond", func() {
						<-time.After(500 * time.Millisecond)
						if how == "killed" {
							b.kill()
							<-time.After(5 * time.Second)
							b.start()
							b.soon("GET", "/_up", "", "200")
							return
						}
						for _, other := range []string{"10.0.0.1", "10.0.0.3"} {
							w.net.SetLink("10.0.0.2", other, simnet.Link{Cut: true})
							w.net.SetLink(other, "10.0.0.2", simnet.Link{Cut: true})
						}
						<-time.After(5 * time.Second)
						w.net.Heal()
					})
				}
				revs := writing.end()
				<-time.After(pushed)
				a.json("/pond/_changes?since="+url.QueryEscape(before.Last), &after)
				for id, rev := range revs {
					if !slices.ContainsFunc(after.Results, func(r change) bool { return r.ID == id && r.Changes[0].Rev == rev }) {
						w.t.Errorf("%s is not among the changes since", id)
					}
				}
				for i := range 20 {
					id := fmt.Sprint("a", i)
					for _, r := range before.Results {
						if r.ID == id {
							revs[id] = r.Changes[0].Rev
						}
					}
					c.want("GET", "/pond/"+id+"/note", "", fmt.Sprint("200 content ", i))
					c.want("GET", fmt.Sprint("/pond/_local/l", i), "", `200 {"_id":"_local/l`)
				}
				w.wantClean("pond")
				if m, _ := a.node.meta.Database("pond"); len(m.Shards) != 4 {
					w.t.Errorf("%d ranges", len(m.Shards))
				}
				for _, h := range w.homes {
					h.wantAll("pond", revs)
				}
				w.eventually("the feed has shown all", func() bool { return len(feed.lacks(revs)) == 0 })
				feed.cancel()
				<-feed.ended
				w.t.Logf("the feed broke off %d times: %q", len(feed.breaks), feed.breaks)
			})
		})
	}
}

// What happens to a job at each of its steps: it goes on, or nothing is left of it.
func TestSplitInterrupted(t *testing.T) {
	ways := map[string]func(h *home, db, id string){
		"restart": func(h *home, _, _ string) {
			h.kill()
			h.start()
			h.soon("GET", "/_up", "", "200")
		},
		"stop": func(h *home, _, id string) {
			other := h.town.homes[1+h.i%3]
			other.want("PUT", "/_reshard/jobs/"+id+"/state", `{"state":"stopped"}`, "200")
			<-time.After(2 * time.Second)
			other.want("PUT", "/_reshard/jobs/"+id+"/state", `{"state":"running"}`, "200")
		},
		"stop all": func(h *home, _, _ string) {
			other := h.town.homes[1+h.i%3]
			other.want("PUT", "/_reshard/state", `{"state":"stopped"}`, "200")
			<-time.After(2 * time.Second)
			other.want("PUT", "/_reshard/state", `{"state":"running"}`, "200")
		},
		"remove": func(h *home, _, id string) { h.town.homes[1+h.i%3].want("DELETE", "/_reshard/jobs/"+id, "", "200") },
		"delete": func(h *home, db, _ string) { h.town.homes[1+h.i%3].want("DELETE", "/"+db, "", "200") },
	}
	for _, name := range someOf(slices.Collect(maps.Keys(ways)), 2) {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(w *town) {
				w.seeded()
				for i, at := range []job.Step{
					job.StepNew, job.InitialCopy, job.Topoff1, job.BuildIndices, job.Topoff2, job.CopyLocalDocs, job.UpdateShardmap, job.WaitSourceClose,
				} {
					w.interrupted(w.homes[1+i%3], at, name, ways[name])
				}
			})
		})
	}
}

// interrupted splits a shard of one node and does something when the job is at a step.
func (w *town) interrupted(h *home, at job.Step, name string, interrupt func(h *home, db, id string)) {
	w.t.Helper()
	db := "pond-" + strings.ReplaceAll(string(at), "_", "-")
	h.want("PUT", "/"+db+"?q=1&n=3", "", "201")
	h.want("PUT", "/"+db+"/_design/v", viewOfRevs, "201")
	written := w.write(db, 1)
	<-time.After(time.Second)
	m, _ := h.node.meta.Database(db)
	one, _ := m.Shards[0].CopyOn(h.name)
	table := h.node.resharder.Table()
	source, err := reshard.SplitOf(m, m.Shards[0].Range, one)
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := table.Create(w.t.Context(), source)
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		changed := h.node.meta.Records.RecordsChanged()
		if j, err := table.Job(w.t.Context(), id); err != nil || j.Step == at || j.Ended() {
			break
		}
		<-changed
	}
	interrupt(h, db, id)
	revs := written.end()
	var last *job.Job
	w.eventually("the job has ended", func() bool {
		last, err = h.node.resharder.Table().Job(w.t.Context(), id)
		return fault.Is(err, fault.NotFound) || err == nil && last.Ended()
	})
	switch {
	case name == "delete":
		if last != nil && last.State != job.Failed && last.State != job.Completed {
			w.t.Errorf("%s: %+v", at, last)
		}
		w.wantClean(db)
		return
	case name != "remove" && (last == nil || last.State != job.Completed):
		w.t.Errorf("%s: %+v", at, last)
	}
	w.wantClean(db)
	if name == "restart" {
		<-time.After(pushed)
	}
	for _, h := range w.homes {
		h.wantAll(db, revs)
	}
}
