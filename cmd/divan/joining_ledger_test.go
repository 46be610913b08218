package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/shard/ring"
	"divan/storage"
)

// told is the state of a document.
type told struct {
	rev     string
	deleted bool
}

// status is that of a request for the document, and shown the revision of it that a
// client may see.
func (s told) status() int {
	if s.deleted {
		return 404
	}
	return 200
}

func (s told) shown() string {
	if s.deleted {
		return ""
	}
	return s.rev
}

// ledger is what clients were told of the documents of a database. Each document has
// one client.
type ledger struct {
	db    string
	q     int // ranges
	mu    sync.Mutex
	acked map[string]told
	other int // requests that were answered otherwise
	// elections: the test pauses nodes that lead, so that for a while no node can say whether
	// there is a database. A request is sent again then.
	elections bool
}

// newLedger makes the database.
func newLedger(t *testing.T, m *member, db string, q, n int) *ledger {
	t.Helper()
	m.want(t, "PUT", fmt.Sprintf("/%s?q=%d&n=%d", db, q, n), "", 201)
	return &ledger{db: db, q: q, acked: make(map[string]told)}
}

// write makes the next revision of a document, a deletion if that is said. The error is
// nil when it was acknowledged.
func (l *ledger) write(m *member, id string, deletion bool) error {
	body := map[string]any{"from": m.name}
	if before := l.sofar()[id]; before.rev != "" {
		body["_rev"] = before.rev
	}
	if deletion {
		body["_deleted"] = true
	}
	in, err := json.Marshal(body)
	if err != nil {
		return err
	}
	status, answer, err := l.ask(m, "PUT", "/"+l.db+"/"+id, in)
	if err == nil && status != 201 && status != 202 && (!deletion || status != 200) {
		err = fmt.Errorf("PUT /%s/%s through %s: %d %s", l.db, id, m.name, status, answer)
	}
	var done struct{ Rev string }
	if err == nil {
		err = json.Unmarshal(answer, &done)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.other++
		return err
	}
	l.acked[id] = told{done.Rev, deletion}
	return nil
}

// ask sends a request about a document.
func (l *ledger) ask(m *member, method, path string, body []byte) (status int, answer []byte, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		status, answer, err = m.do(method, path, "application/json", body)
		undecided := status == 503 && strings.Contains(string(answer), "No majority of the nodes can decide on a change of metadata now.")
		if !undecided || !l.elections || time.Now().After(end) {
			return status, answer, err
		}
	}
}

// fill writes documents, each of which must be acknowledged.
func (l *ledger) fill(t *testing.T, m *member, name string, count int) {
	t.Helper()
	for i := range count {
		if err := l.write(m, fmt.Sprint(name, i), false); err != nil {
			t.Error(err)
		}
	}
}

// sofar returns what was acknowledged by now.
func (l *ledger) sofar() map[string]told {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}

// reads asks a node for documents. The error tells the first that is not as it is wanted.
func (l *ledger) reads(m *member, all map[string]told, query string) error {
	for id, want := range all {
		status, answer, err := l.ask(m, "GET", "/"+l.db+"/"+id+query, nil)
		if err != nil {
			return err
		}
		var got struct {
			Rev string `json:"_rev"`
		}
		if status == 200 {
			err = json.Unmarshal(answer, &got)
		}
		if err != nil || status != want.status() || got.Rev != want.shown() {
			return fmt.Errorf("GET /%s/%s%s through %s: %d %s, want %v", l.db, id, query, m.name, status, answer, want)
		}
	}
	return nil
}

// lists asks a node for the list of documents, which is that of one copy of each range: of
// the node's own, if it is full.
func (l *ledger) lists(m *member, all map[string]told) error {
	var list struct {
		Rows []struct {
			ID    string
			Value struct{ Rev string }
		}
	}
	if status, err := m.call("GET", "/"+l.db+"/_all_docs", nil, &list); err != nil || status != 200 {
		return fmt.Errorf("_all_docs of %s through %s: %d %w", l.db, m.name, status, err)
	}
	listed := make(map[string]string)
	for _, row := range list.Rows {
		listed[row.ID] = row.Value.Rev
	}
	for id, want := range all {
		if listed[id] != want.shown() {
			return fmt.Errorf("_all_docs of %s through %s has %q of %s, want %v", l.db, m.name, listed[id], id, want)
		}
	}
	return nil
}

// noneFull reports whether the copies of a node join, those of all ranges.
func (l *ledger) noneFull(m *member) bool {
	joining := 0
	now, err := m.copies()
	for _, name := range now.Joining {
		if strings.Contains(name, "/"+l.db+".") {
			joining++
		}
	}
	return err == nil && joining == l.q
}

// watch reads all the time through a node whose copies join, until the returned function
// is called.
func (l *ledger) watch(t *testing.T, m *member) (end func()) {
	t.Helper()
	sure := l.sofar()
	return meanwhile(t, func(int) {
		all := l.sofar()
		if l.noneFull(m) { // what comes later than that may be on the other copies first
			sure = all
		}
		if err := errors.Join(l.lists(m, sure), l.reads(m, sure, "?r=1"), l.reads(m, all, "")); err != nil {
			t.Error(err)
		}
	})
}

// awaitAll waits until each node's own copies have all that was acknowledged.
func (l *ledger) awaitAll(t *testing.T, nodes ...*member) {
	t.Helper()
	for _, m := range nodes {
		var last error
		defer func() {
			if last != nil {
				t.Log(last)
			}
		}()
		eventually(t, "all is on "+m.name, func() bool {
			if last = l.lists(m, l.acked); last == nil {
				last = l.reads(m, l.acked, "?r=1")
			}
			return last == nil
		})
	}
}

// held reads the copies that lie in a data directory.
func (l *ledger) held(t *testing.T, m *member) map[string]told {
	t.Helper()
	engine, err := storage.NewEngine(storage.Options{Dir: m.dir, Logger: zap.NewNop(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]told)
	names, err := engine.Catalog().Names()
	for _, name := range names {
		if _, db, _, _ := ring.ParseCopyName(name); db == l.db {
			err = errors.Join(err, readStore(engine, name, all))
		}
	}
	if err := errors.Join(err, engine.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

func readStore(engine *storage.Engine, name string, into map[string]told) error {
	store, err := engine.Acquire(name)
	if err != nil {
		return err
	}
	defer engine.Release(store)
	snap, err := store.Snapshot()
	if err != nil {
		return err
	}
	defer func() { _ = snap.Close() }() // only read
	docs, err := snap.Heads(storage.Range{})
	if err != nil {
		return err
	}
	for ok := docs.First(); ok; ok = docs.Next() {
		into[string(docs.ID())] = told{docs.Head().Winner.String(), docs.Head().Deleted}
	}
	return docs.Close()
}

// bury stops nodes and looks at what they leave. The databases have copies on each.
func bury(t *testing.T, nodes []*member, ledgers ...*ledger) {
	t.Helper()
	for _, m := range nodes {
		m.stop()
	}
	for _, m := range nodes {
		checkDirectory(t, m.dir)
	}
	for _, l := range ledgers {
		l.compare(t, nodes...)
	}
}

// compare compares what lies on nodes with what was acknowledged. What was not
// acknowledged is on each of them or on none.
func (l *ledger) compare(t *testing.T, nodes ...*member) {
	t.Helper()
	first := l.held(t, nodes[0])
	for _, m := range nodes {
		got := l.held(t, m)
		for id, want := range l.acked {
			if got[id] != want {
				t.Errorf("%s has %v of %s/%s, acknowledged was %v", m.name, got[id], l.db, id, want)
			}
		}
		for _, side := range []map[string]told{first, got} {
			for id := range side {
				if got[id] != first[id] {
					t.Errorf("%s has %v of %s/%s, and %s has %v", m.name, got[id], l.db, id, nodes[0].name, first[id])
				}
			}
		}
	}
}

// meanwhile does something again and again until the returned function is called, which
// waits for its end.
func meanwhile(t *testing.T, do func(round int)) (end func()) {
	t.Helper()
	over := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				do(i)
			}
		}
	})
	end = sync.OnceFunc(func() {
		close(over)
		work.Wait()
	})
	t.Cleanup(end) // when the test ends early, before the nodes do
	return end
}
