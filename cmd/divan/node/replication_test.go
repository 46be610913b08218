package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"divan/replicator/ownership"
)

// entry is a document or a job as _scheduler shows it.
type entry struct {
	ID      string `json:"id"`
	Node    string `json:"node"`
	State   string `json:"state"`
	Errors  int    `json:"error_count"`
	History []struct {
		Type string `json:"type"`
	} `json:"history"`
	Info struct {
		Error   string `json:"error"`
		Written int    `json:"docs_written"`
	} `json:"info"`
}

// entry asks a node for what _scheduler shows at a path; empty when it cannot
// tell.
func (h *home) entry(path string) (e entry) {
	h.town.t.Helper()
	if text, ok := strings.CutPrefix(h.ask("GET", "/_scheduler/"+path, ""), "200 "); ok {
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			h.town.t.Errorf("%s: %v", text, err)
		}
	}
	return e
}

// reaches waits until a document is in a state.
func (h *home) reaches(id, state string) entry {
	h.town.t.Helper()
	var e entry
	start := time.Now()
	for e = h.entry("docs/_replicator/" + id); e.State != state; e = h.entry("docs/_replicator/" + id) {
		if time.Since(start) > 10*time.Minute {
			h.town.t.Fatalf("document %s is %+v, not %s", id, e, state)
		}
		<-time.After(100 * time.Millisecond)
	}
	return e
}

// sides are the members source and target of databases of a node.
func (h *home) sides(source, target string) string {
	return fmt.Sprintf(`"source":"http://adm:pass@10.0.0.%d:5984/%s","target":"http://adm:pass@10.0.0.%d:5984/%s"`, h.i, source, h.i, target)
}

// lone starts a node that stands alone.
func (w *town) lone(environ ...string) *home {
	w.t.Helper()
	h := w.build(1, append(environ, "DIVAN_COUCHDB__SINGLE_NODE=true", openToAll)...)
	h.start()
	h.soon("GET", "/_replicator", "", "200")
	return h
}

// The node of a job dies: another one goes on, with the job of the document and
// with those that it gave the slots of.
func TestReplicationMoves(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/lake", "", "201")
		a.soon("PUT", "/pond/frog", "{}", "201")
		a.soon("PUT", "/_replicator/job", `{`+a.sides("pond", "lake")+`,"continuous":true}`, "201")
		b.soon("GET", "/lake/frog", "", "200")
		first := b.reaches("job", "running")
		byName := map[string]*home{a.name: a, b.name: b, c.name: c}
		dead := byName[first.Node]
		var alive *home
		for _, h := range byName {
			if h != dead {
				alive = h
			}
		}
		dead.kill()
		alive.soon("PUT", "/pond/toad", "{}", "20")
		took := alive.soon("GET", "/lake/toad", "", "200")
		w.t.Logf("another node goes on after %v", took)
		second := alive.reaches("job", "running")
		if second.Node == first.Node || second.ID != first.ID {
			w.t.Errorf("first %+v, then %+v", first, second)
		}
		dead.start()
		alive.soon("PUT", "/pond/newt", "{}", "20")
		alive.soon("GET", "/lake/newt", "", "200")
		w.eventually("only one node has the job", func() bool {
			jobs := 0
			for _, h := range byName {
				jobs += strings.Count(h.ask("GET", "/_node/_local/_scheduler/jobs", ""), `"doc_id":"job"`)
			}
			return jobs == 1
		})
	})
}

// A continuous replication of a request goes along when its slot moves to a node
// that lives, and can be cancelled there.
func TestRequestIsHandedOver(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/lake", "", "201")
		body := `{` + a.sides("pond", "lake") + `,"continuous":true}`
		answer := a.ask("POST", "/_replicate", body)
		text, ok := strings.CutPrefix(answer, `202 {"ok":true,"_local_id":"`)
		if !ok {
			w.t.Fatal(answer)
		}
		id := strings.TrimSuffix(text, `"}`)
		first := a.entry("jobs/" + id)
		b.want("PUT", "/_node/_local/_nodes/"+first.Node, b.drainBody(first.Node), "201")
		var second entry
		w.eventually("the job has moved", func() bool {
			second = c.entry("jobs/" + id)
			return second.Node != "" && second.Node != first.Node
		})
		owner, _ := a.node.owners.Owner(ownership.Slot(id))
		if second.Node != owner.Node {
			w.t.Errorf("%s has the job, %s the slot", second.Node, owner.Node)
		}
		a.soon("PUT", "/pond/frog", "{}", "201")
		c.soon("GET", "/lake/frog", "", "200")
		c.want("POST", "/_replicate", `{"cancel":true,"replication_id":"`+id+`"}`, "200")
		b.want("POST", "/_replicate", `{"cancel":true,"replication_id":"`+id+`"}`, "404")
	})
}

// A replication of a request runs on any node, by the rights that were given or taken away a
// moment before.
func TestRightsOfARequest(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.seeded()
		a.soon("PUT", "/_users/org.couchdb.user:joe", `{"name":"joe","type":"user","roles":[],"password":"pw"}`, "201")
		for _, h := range w.homes {
			w.eventually("the account is everywhere", func() bool { return strings.Contains(h.as("joe", "GET", "/_session", ""), `"joe"`) })
		}
		a.want("PUT", "/pond", "", "201")
		for i := range 12 {
			lake := fmt.Sprint("lake", i)
			a.want("PUT", "/"+lake, "", "201")
			body := `{"source":"http://adm:pass@10.0.0.1:5984/pond","target":"http://joe:pw@10.0.0.1:5984/` + lake + `"}`
			a.want("POST", "/_replicate", body, "403 ")
			a.want("PUT", "/"+lake+"/_security", `{"members":{"names":["joe"]}}`, "200")
			a.want("POST", "/_replicate", body, `200 {"ok":true`)
			a.want("PUT", "/"+lake+"/_security", `{"members":{"names":["jim"]}}`, "200")
			a.want("POST", "/_replicate", body, "403 ")
		}
	})
}

// drainBody is the document of a node that is to be emptied.
func (h *home) drainBody(node string) string {
	h.town.t.Helper()
	text, _ := strings.CutPrefix(h.ask("GET", "/_node/_local/_nodes/"+node, ""), "200 ")
	var d struct {
		Rev string `json:"_rev"`
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		h.town.t.Fatalf("%s: %v", text, err)
	}
	return `{"_rev":"` + d.Rev + `","decom":true}`
}

// member returns a member of a document of _replicator as text.
func (h *home) member(id, name string) string {
	h.town.t.Helper()
	text, _ := strings.CutPrefix(h.ask("GET", "/_replicator/"+id, ""), "200 ")
	var d map[string]any
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		h.town.t.Fatalf("%s: %v", text, err)
	}
	value, ok := d[name]
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}

// The second of two documents with one replication fails.
func TestDuplicateReplications(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/_replicator/one", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		id := h.reaches("one", "running").ID
		h.want("PUT", "/_replicator/two", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		failed := h.reaches("two", "failed")
		want := "Replication `" + id + "` specified by document `two` already started, triggered by document `one` from db `_replicator`"
		if failed.Info.Error != want {
			w.t.Errorf("%s, want %s", failed.Info.Error, want)
		}
		if e := h.reaches("one", "running"); len(e.History) != 0 || e.ID != id {
			w.t.Errorf("%+v", e)
		}
	})
}

// So it does when another node runs the first.
func TestDuplicateElsewhere(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, _ := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/lake", "", "201")
		body := `{` + a.sides("pond", "lake") + `,"continuous":true}`
		var ids [2]string // of documents that different nodes own
		owner := func(id string) string {
			o, _ := a.node.owners.Owner(ownership.Slot("_replicator", id))
			return o.Node
		}
		w.eventually("all slots have owners", func() bool {
			for i := range 100 {
				id := fmt.Sprint("job", i)
				if ids[0] == "" && owner(id) == a.name {
					ids[0] = id
				}
				if ids[1] == "" && owner(id) == b.name {
					ids[1] = id
				}
			}
			return ids[0] != "" && ids[1] != ""
		})
		a.soon("PUT", "/_replicator/"+ids[0], body, "201")
		first := a.reaches(ids[0], "running")
		<-time.After(2 * time.Second)
		a.want("PUT", "/_replicator/"+ids[1], body, "201")
		want := "Replication `" + first.ID + "` specified by document `" + ids[1] + "` already started, triggered by document `" + ids[0] + "` from db `_replicator`"
		if failed := a.reaches(ids[1], "failed"); failed.Info.Error != want {
			w.t.Errorf("%s, want %s", failed.Info.Error, want)
		}
		a.reaches(ids[0], "running")
	})
}

// With update_docs documents tell that they are triggered, and errors; what the
// server writes does not start them again, what a client writes does.
func TestUpdateDocs(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone("DIVAN_REPLICATOR__UPDATE_DOCS=true")
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/_replicator/job", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		id := h.reaches("job", "running").ID
		w.eventually("the document is triggered", func() bool { return h.member("job", "_replication_state") == "triggered" })
		if got := h.member("job", "_replication_id"); got != id {
			w.t.Errorf("_replication_id %s, want %s", got, id)
		}
		<-time.After(time.Minute)
		if j := h.entry("jobs/" + id); len(j.History) != 2 {
			w.t.Errorf("it was started again: %+v", j)
		}
		rev := h.member("job", "_rev")
		h.want("PUT", "/_replicator/job", `{"_rev":"`+rev+`",`+h.sides("pond", "none")+`,"continuous":true}`, "201")
		if e := h.reaches("job", "crashing"); e.ID == id || e.Errors != 1 || e.Info.Error != "db_not_found: could not open http://10.0.0.1:5984/none/" {
			w.t.Errorf("%+v", e)
		}
		w.eventually("the document has the error", func() bool { return h.member("job", "_replication_state") == "error" })
		h.want("PUT", "/none", "", "201")
		if e := h.reaches("job", "running"); e.Errors != 1 {
			w.t.Errorf("%+v", e)
		}
		<-time.After(3 * time.Minute)
		if e := h.reaches("job", "running"); e.Errors != 0 {
			w.t.Errorf("after a healthy run: %+v", e)
		}
	})
}

// A document that is completed has what became of it, and no id of the replication
// unless update_docs told one before.
func TestCompletedDocument(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/pond/frog", "{}", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/_replicator/job", `{`+h.sides("pond", "lake")+`}`, "201")
		if e := h.reaches("job", "completed"); e.Info.Written != 1 {
			w.t.Errorf("%+v", e)
		}
		if state, id := h.member("job", "_replication_state"), h.member("job", "_replication_id"); state != "completed" || id != "" {
			w.t.Errorf("_replication_state %q, _replication_id %q", state, id)
		}
	})
}

// _scheduler/docs shows the proxies of a document without their passwords.
func TestProxiesAreMasked(t *testing.T) {
	h := start(t, inMemory(t))
	for id, want := range map[string]string{
		"plain": `"source_proxy":null,"target_proxy":null`,
		"job":   `"source_proxy":"http://you:*****@127.0.0.1:1","target_proxy":"http://me@127.0.0.1:1"`,
	} {
		proxies := map[string]string{"job": `,"source_proxy":"http://you:secret@127.0.0.1:1","target_proxy":"http://me@127.0.0.1:1"`}[id]
		h.want("PUT", "/_replicator/"+id, `{"source":"http://127.0.0.1:1/`+id+`","target":"http://127.0.0.1:1/lake","continuous":true`+proxies+`}`, "201")
		for _, path := range []string{"/_scheduler/docs", "/_scheduler/docs/_replicator/" + id} {
			got := ""
			eventually(t, path+" shows the proxies of "+id, func() bool {
				got = h.ask("GET", path, "")
				return strings.Contains(got, want)
			})
			if strings.Contains(got, "secret") {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	h.end()
}

// A wrong password in the URL of a replication counts once, however often it runs: the
// account is not locked for others. Guesses are.
func TestWrongPasswordOfAJob(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		for _, db := range []string{"/pond", "/lake"} {
			h.want("PUT", db+"/_security", `{"members":{"names":["joe"]}}`, "200")
		}
		h.want("PUT", "/_users/org.couchdb.user:joe", `{"name":"joe","type":"user","roles":[],"password":"right"}`, "201")
		run := func(password, want string) {
			w.t.Helper()
			h.want("POST", "/_replicate", `{"source":"http://joe:`+password+`@10.0.0.1:5984/pond","target":"http://joe:`+password+`@10.0.0.1:5984/lake"}`, want)
		}
		run("right", `200 {"ok":true`)
		for range 8 {
			run("wrong", `500 {"error":"replication_auth_error"`)
		}
		run("right", `200 {"ok":true`)
		for i := range 4 { // and the one from above
			run(fmt.Sprint("guess", i), `500 {"error":"replication_auth_error"`)
		}
		run("right", "403 ")
		h.want("GET", "/pond", "", "200") // a client has an address of its own
	})
}

// The text of a filter function is part of the id: it is waited for, and read
// again now and then.
func TestFilterOfDocument(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/_replicator/job", `{`+h.sides("pond", "lake")+`,"continuous":true,"filter":"f/legs"}`, "201")
		if e := h.reaches("job", "error"); e.ID != "" || e.Errors != 1 || !strings.Contains(e.Info.Error, "f/legs") {
			w.t.Errorf("%+v", e)
		}
		filter := func(rev, legs string) {
			h.want("PUT", "/pond/_design/f", `{`+rev+`"filters":{"legs":"function (doc) { return doc.legs == `+legs+`; }"}}`, "201")
		}
		filter("", "4")
		first := h.reaches("job", "running")
		h.want("PUT", "/pond/frog", `{"legs":4}`, "201")
		h.want("PUT", "/pond/crane", `{"legs":2}`, "201")
		h.soon("GET", "/lake/frog", "", "200")
		h.want("GET", "/lake/crane", "", "404")
		rev := h.ask("GET", "/pond/_design/f", "")
		rev = rev[strings.Index(rev, `"_rev":`):]
		filter(rev[:strings.Index(rev, ",")+1], "2")
		took := h.soonWithin(2*time.Minute, "/lake/crane")
		if took > 70*time.Second {
			w.t.Errorf("the new function counts after %v", took)
		}
		if second := h.reaches("job", "running"); second.ID == first.ID {
			w.t.Error("the id is the same")
		}
	})
}

// soonWithin asks for a document until it is there, and returns how long that
// took.
func (h *home) soonWithin(longest time.Duration, path string) time.Duration {
	h.town.t.Helper()
	start := time.Now()
	for !strings.HasPrefix(h.ask("GET", path, ""), "200") {
		if time.Since(start) > longest {
			h.town.t.Fatalf("no %s after %v", path, longest)
		}
		<-time.After(100 * time.Millisecond)
	}
	return time.Since(start)
}

// Jobs of documents survive a restart, know their own node after it, and stop with their
// database.
func TestReplicationsOfDatabase(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/x%2F_replicator", "", "201")
		h.want("PUT", "/x%2F_replicator/job", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		h.want("PUT", "/pond/frog", "{}", "201")
		h.soon("GET", "/lake/frog", "", "200")
		h.end()
		h.start()
		h.soon("PUT", "/pond/toad", "{}", "201")
		h.soon("GET", "/lake/toad", "", "200")
		if got := h.ask("GET", "/_node/_local/_stats/couch_replicator/connection/creates", ""); !strings.Contains(got, `"value":0,`) {
			w.t.Errorf("after the restart the node reaches its own databases through HTTP: %s", got)
		}
		h.want("DELETE", "/x%2F_replicator", "", "200")
		w.eventually("the job is gone", func() bool {
			return strings.HasPrefix(h.ask("GET", "/_scheduler/jobs", ""), `200 {"total_rows":0,"offset":0,"jobs":[]}`)
		})
	})
}

// An administrator of nothing sees no credentials, cannot write what it sees, nor
// take a document over.
func TestReplicationDocumentOfOthers(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/_users/org.couchdb.user:bob", `{"name":"bob","password":"pw","roles":[],"type":"user"}`, "201")
		h.want("PUT", "/_replicator/_security", `{"members":{"names":["bob"]}}`, "200")
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/_replicator/job", `{`+h.sides("pond", "none")+`,"continuous":true}`, "201")
		if got := h.member("job", "owner"); got != "adm" {
			w.t.Errorf("owner %q", got)
		}
		own := h.member("job", "_rev")
		seen := h.as("bob", "GET", "/_replicator/job", "")
		if strings.Contains(seen, "pass") || !strings.Contains(seen, `"source":"http://10.0.0.1:5984/pond"`) || strings.Contains(seen, own) {
			w.t.Error(seen)
		}
		for _, path := range []string{"/_replicator/_all_docs?include_docs=true", "/_replicator/_changes?include_docs=true"} {
			if got := h.as("bob", "GET", path, ""); !strings.HasPrefix(got, "401") {
				w.t.Errorf("%s: %s", path, got)
			}
		}
		if got := h.as("bob", "POST", "/_replicator/_bulk_get", `{"docs":[{"id":"job"}]}`); strings.Contains(got, "pass") || !strings.HasPrefix(got, "200") {
			w.t.Error(got)
		}
		if got := h.as("bob", "DELETE", "/_replicator/job?rev="+own, ""); !strings.HasPrefix(got, `403 {"error":"forbidden","reason":"Can't update`) {
			w.t.Error(got)
		}
		if got := h.as("bob", "PUT", "/_replicator/job?rev="+own, `{`+h.sides("pond", "lake")+`}`); !strings.HasPrefix(got, "403") {
			w.t.Error(got)
		}
		if got := h.as("bob", "PUT", "/_replicator/mine", `{`+h.sides("pond", "x")+`,"continuous":true}`); !strings.HasPrefix(got, "201") {
			w.t.Error(got)
		}
		if got := h.as("bob", "GET", "/_replicator/mine", ""); !strings.Contains(got, `"owner":"bob"`) || !strings.Contains(got, "adm:pass@") {
			w.t.Error(got)
		}
	})
}

// A request finds the job of an earlier one only when it asks for the same with
// the same rights.
func TestRequestsOfOneReplication(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/_users/org.couchdb.user:bob", `{"name":"bob","password":"pw","roles":[],"type":"user"}`, "201")
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		started := func(more string) string {
			w.t.Helper()
			answer := h.ask("POST", "/_replicate", `{`+h.sides("pond", "lake")+`,"continuous":true`+more+`}`)
			id, ok := strings.CutPrefix(answer, `202 {"ok":true,"_local_id":"`)
			if !ok {
				w.t.Fatal(answer)
			}
			<-time.After(2 * time.Second) // start_time tells seconds
			return h.ask("GET", "/_scheduler/jobs/"+strings.TrimSuffix(id, `"}`), "")
		}
		startTime := func(job string) string {
			w.t.Helper()
			_, at, ok := strings.Cut(job, `"start_time":"`)
			if !ok {
				w.t.Fatal(job)
			}
			return at[:len("2000-01-01T00:00:00Z")]
		}
		first := startTime(started(""))
		if again := startTime(started(`,"worker_processes":2`)); again != first {
			w.t.Errorf("the same request began anew: %s, %s", first, again)
		}
		if other := startTime(started(`,"create_target_params":{"q":"1"}`)); other == first {
			w.t.Error("another request changed nothing")
		}
		_, seq, _ := strings.Cut(h.ask("GET", "/pond/_changes", ""), `"last_seq":`)
		seq, _, _ = strings.Cut(seq, ",")
		started(`,"since_seq":` + seq)
		if jobs := h.ask("GET", "/_scheduler/jobs", ""); !strings.HasPrefix(jobs, `200 {"total_rows":2,`) {
			w.t.Errorf("not a replication beside the one without since_seq: %s", jobs)
		}
		if got := h.as("bob", "POST", "/_replicate", `{`+h.sides("pond", "lake")+`,"continuous":true}`); !strings.HasPrefix(got, "409") {
			w.t.Error(got)
		}
	})
}

// That a replication can never run is written down as soon as that is possible.
func TestFailedIsWrittenLater(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond", "", "201")
		h.want("PUT", "/lake", "", "201")
		h.want("PUT", "/_replicator/_design/no", `{"validate_doc_update":"function(d) { if (d._replication_state) throw({forbidden: 'no'}) }"}`, "201")
		h.want("PUT", "/_replicator/one", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		h.reaches("one", "running")
		h.want("PUT", "/_replicator/two", `{`+h.sides("pond", "lake")+`,"continuous":true}`, "201")
		if e := h.reaches("two", "error"); !strings.Contains(e.Info.Error, "already started, triggered by document `one`") {
			w.t.Errorf("%+v", e)
		}
		h.want("DELETE", "/_replicator/_design/no?rev="+h.member("_design/no", "_rev"), "", "200")
		w.eventually("the document tells that it failed", func() bool { return h.member("two", "_replication_state") == "failed" })
		h.reaches("two", "failed")
		h.reaches("one", "running")
	})
}
