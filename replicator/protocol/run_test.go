package protocol

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is a replication as the configuration's defaults have it.
func request() *spec.Spec {
	return &spec.Spec{
		Source: spec.Address{URL: "http://a/source/"}, Target: spec.Address{URL: "http://b/target/"},
		Options: spec.Options{
			UseCheckpoints: true, CheckpointInterval: 30 * time.Second, UseBulkGet: true, Workers: 4, BatchSize: 500,
			ConnectionTimeout: 30 * time.Second,
		},
	}
}

func options(source endpoint.Source, target endpoint.Target, s *spec.Spec) Options {
	return Options{
		Spec: s, ID: s.ID("uuid", ""), Source: source, Target: target,
		Logger: zap.NewNop(), Progress: &Progress{},
	}
}

// answer is the outcome of a run, as a client reads it.
type answer []byte

func replicate(t *testing.T, source endpoint.Source, target endpoint.Target, s *spec.Spec) answer {
	t.Helper()
	r, err := Run(t.Context(), options(source, target, s))
	if err != nil {
		t.Fatal(err)
	}
	body := r.AppendJSON(nil)
	if _, err := doc.Canonical(nil, body); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return body
}

// at returns what stands at a path of the answer; a number means an element.
func (a answer) at(path string) string {
	value := []byte(a)
	for _, name := range strings.Split(path, ".") {
		if !doc.IsArray(value) {
			value = doc.Lookup(value, name)
			continue
		}
		i, found := 0, []byte(nil)
		_ = doc.EachElement(value, func(v []byte) error {
			if fmt.Sprint(i) == name {
				found = v
			}
			i++
			return nil
		})
		value = found
	}
	return string(value)
}

// is checks pairs of paths and values.
func (a answer) is(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := a.at(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s is %s, not %s, in %s", pairs[i], got, pairs[i+1], a)
		}
	}
}

func same(t *testing.T, a, b *store) {
	t.Helper()
	if x, y := a.leaves(), b.leaves(); x != y {
		t.Fatalf("source:\n%s\ntarget:\n%s", x, y)
	}
}

func TestOneShot(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	for _, id := range []string{"a", "b", "c", "_design/d"} {
		a.edit(id, "{}")
	}
	first := replicate(t, a, b, request())
	first.is(t, "ok", "true", "no_changes", "", "replication_id_version", "4", "source_last_seq", `"4-a"`, "start_time", "",
		"history.0.start_last_seq", "0", "history.0.end_last_seq", `"4-a"`, "history.0.recorded_seq", `"4-a"`,
		"history.0.missing_checked", "4", "history.0.missing_found", "4", "history.0.docs_read", "4", "history.0.docs_written", "4",
		"history.0.doc_write_failures", "0", "history.0.bulk_get_docs", "4", "history.0.bulk_get_attempts", "4", "history.1", "",
		"history.0.session_id", first.at("session_id"))
	same(t, a, b)
	if end, err := time.Parse(`"Mon, 02 Jan 2006 15:04:05 GMT"`, first.at("history.0.end_time")); err != nil || time.Since(end) > time.Minute {
		t.Errorf("it ended at %v: %v", end, err)
	}
	again := replicate(t, a, b, request())
	again.is(t, "no_changes", "true", "history", first.at("history"), "session_id", first.at("session_id"), "source_last_seq", `"4-a"`)

	a.edit("a", `{"n":11}`)
	a.remove("b")
	a.edit("e", "{}")
	third := replicate(t, a, b, request())
	third.is(t, "history.0.start_last_seq", `"4-a"`, "history.0.end_last_seq", `"7-a"`, "history.0.missing_checked", "7",
		"history.0.missing_found", "7", "history.0.docs_written", "7", "history.1", first.at("history.0"), "history.2", "")
	same(t, a, b)
}

// A replication that begins at since_seq has checkpoints of its own, which win over it. One
// without it copies what the other has left out.
func TestSinceSeq(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	for _, id := range []string{"a", "b", "c"} {
		a.edit(id, "{}")
	}
	since := request()
	since.Since = `"2-a"`
	replicate(t, a, b, since).is(t, "no_changes", "", "history.0.start_last_seq", `"2-a"`, "history.0.docs_written", "1")
	replicate(t, a, b, since).is(t, "no_changes", "true", "source_last_seq", `"3-a"`)
	replicate(t, a, b, request()).is(t, "no_changes", "", "history.0.start_last_seq", "0", "history.0.docs_written", "2")
	same(t, a, b)
	a.edit("d", "{}")
	replicate(t, a, b, since).is(t, "history.0.start_last_seq", `"3-a"`, "history.0.missing_found", "2")
	same(t, a, b)

	anew := request()
	anew.Since = "0"
	replicate(t, a, b, anew).is(t, "history.0.start_last_seq", "0", "history.0.missing_checked", "4", "history.0.docs_written", "0")
}

func TestConflictsAndAttachments(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	root := a.edit("conf", "{}")
	a.extend("conf", root, false, `{"v":1}`)
	a.extend("conf", root, false, `{"v":2}`)
	a.extend("conf", root, true, `{"v":3}`)
	a.edit("gone", "{}")
	a.remove("gone")
	a.edit("att", "{}", attachment("small", []byte("x")), attachment("large", make([]byte, 1000)))
	first := replicate(t, a, b, request())
	first.is(t, "history.0.missing_checked", "5", "history.0.docs_written", "5", "history.0.docs_read", "5")
	same(t, a, b)

	// The next revision keeps an attachment: it goes as a stub.
	large := attachment("large", make([]byte, 1000))
	large.RevPos = 1
	a.edit("att", `{"n":2}`, large, attachment("more", make([]byte, 2000)))
	replicate(t, a, b, request()).is(t, "history.0.docs_written", "6")
	same(t, a, b)

	// A target that does not know the content any more asks for it.
	large.RevPos = 1
	a.edit("att", `{"n":3}`, large)
	d := b.docs["att"]
	for rev, r := range d.content {
		r.atts = nil
		d.content[rev] = r
	}
	replicate(t, a, b, request()).is(t, "history.0.docs_written", "7", "history.0.docs_read", "8", "history.0.doc_write_failures", "0")
	same(t, a, b)
}

func TestFormsOfTheAnswer(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	for _, id := range []string{"a", "b", "c"} {
		a.edit(id, "{}")
	}
	ids := request()
	ids.Filter = endpoint.Filter{HasIDs: true, DocIDs: []string{"a", "c", "zzz"}}
	first := replicate(t, a, b, ids)
	first.is(t, "docs_read", "2", "docs_written", "2", "doc_write_failures", "0", "start_time", first.at("history.0.start_time"),
		"end_time", first.at("history.0.end_time"), "history.0.missing_checked", "2")
	none := request()
	none.Filter.HasIDs = true
	if got := string(replicate(t, a, b, none)); got != `{"ok":true,"no_changes":true}` {
		t.Error(got)
	}
	bare := request()
	bare.UseCheckpoints = false
	for range 2 {
		replicate(t, a, newStore("c"), bare).is(t, "use_checkpoints", "false", "bulk_get_docs", "3", "session_id", "", "history", "")
	}
	if len(a.local) != 2 {
		t.Errorf("checkpoints: %v", a.local)
	}
	winners, c := request(), newStore("c")
	winners.WinnerOnly = true
	root := a.extend("conf", doc.Rev{}, false, "{}")
	a.extend("conf", root, false, `{"v":1}`)
	a.extend("conf", root, false, `{"v":2}`)
	replicate(t, a, c, winners).is(t, "history.0.docs_written", "4")
	since := request()
	since.Since = `"3-a"`
	replicate(t, a, newStore("d"), since).is(t, "history.0.start_last_seq", `"3-a"`, "history.0.docs_written", "2")
}

// A filter that lets nothing pass leaves the answer as it was, but what it has
// looked at is not looked at again.
func TestFilteredProgress(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	ids := request()
	ids.Filter = endpoint.Filter{HasIDs: true, DocIDs: []string{"a"}}
	a.edit("a", "{}")
	first := replicate(t, a, b, ids)
	a.edit("b", "{}")
	replicate(t, a, b, ids).is(t, "no_changes", "true", "history", first.at("history"))
	o := options(a, b, ids)
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := o.Progress.Snapshot().CheckpointedSeq; got != `"2-a"` {
		t.Errorf("the next run starts at %s", got)
	}
}

func TestCheckpointsLost(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("a", "{}")
	a.edit("b", "{}")
	first := replicate(t, a, b, request())
	base := request().ID("uuid", "").Base
	old := b.local[base]
	a.edit("c", "{}")
	replicate(t, a, b, request())

	// The target is one session behind: the sessions in common count.
	b.local[base] = localDoc{7, old.body}
	a.edit("d", "{}")
	again := replicate(t, a, b, request())
	again.is(t, "history.0.start_last_seq", `"2-a"`, "history.0.missing_checked", "4", "history.1", first.at("history.0"), "history.2", "")

	// Nothing in common: all is compared, nothing copied.
	delete(b.local, base)
	replicate(t, a, b, request()).is(t, "history.0.start_last_seq", "0", "history.0.missing_checked", "4", "history.0.docs_written", "0",
		"no_changes", "", "history.1", "")

	// A session that wrote to one side only ends where the other one says.
	a.edit("e", "{}")
	before := b.local[base]
	third := replicate(t, a, b, request())
	body := strings.ReplaceAll(string(before.body), answer(before.body).at("session_id"), third.at("session_id"))
	b.local[base] = localDoc{9, []byte(body)}
	replicate(t, a, b, request()).is(t, "history.0.start_last_seq", `"4-a"`)
}

func TestHistoryIsBounded(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	for range maxHistory + 3 {
		a.edit("a", "{}")
		replicate(t, a, b, request())
	}
	a.edit("a", "{}")
	got := replicate(t, a, b, request())
	if got.at(fmt.Sprintf("history.%d", maxHistory-1)) == "" || got.at(fmt.Sprintf("history.%d", maxHistory)) != "" {
		t.Errorf("history: %s", got)
	}
	got.is(t, "history.0.docs_written", fmt.Sprint(maxHistory+4))
}

func TestRefusals(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	kinds := map[string]fault.Kind{"f": fault.Forbidden, "u": fault.Unauthorized, "l": fault.DocumentTooLarge}
	b.allow = func(d *endpoint.Doc) error {
		if k, ok := kinds[d.ID]; ok {
			return fault.New(k, "no")
		}
		return nil
	}
	for _, id := range []string{"a", "f", "u", "l", "b"} {
		a.edit(id, "{}", attachment("large", make([]byte, 1000)))
		a.edit(id, `{"n":2}`)
	}
	a.edit("f", "{}", attachment("large", make([]byte, 1000))) // one that is written alone
	replicate(t, a, b, request()).is(t, "history.0.docs_read", "5", "history.0.docs_written", "2", "history.0.doc_write_failures", "3")

	c := newStore("c")
	c.allow = func(*endpoint.Doc) error { return fault.New(fault.InsufficientStorage, "the disk is full") }
	if _, err := Run(t.Context(), options(a, c, request())); !fault.Is(err, fault.InsufficientStorage) {
		t.Errorf("a full disk: %v", err)
	}
	if len(c.local) != 0 {
		t.Error("a checkpoint says that documents are there which are not")
	}
}

func TestRequestTooLarge(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	for i := range 40 {
		a.edit(fmt.Sprint(i), fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 100*(i%5))))
	}
	a.edit("giant", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 2000)))
	b.maxWrite = 1000
	replicate(t, a, b, request()).is(t, "history.0.docs_written", "40", "history.0.doc_write_failures", "1")
}

func TestDatabasesThatCannotBeUsed(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("a", "{}")
	b.gone = true
	_, err := Run(t.Context(), options(a, b, request()))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "db_not_found" || f.Reason != "could not open http://b/target/" || f.Kind != fault.NoDatabase {
		t.Errorf("no target: %v", err)
	}
	create := request()
	create.CreateTarget = true
	replicate(t, a, b, create).is(t, "history.0.docs_written", "1")
	a.gone = true
	if _, err := Run(t.Context(), options(a, b, create)); !errors.As(err, &f) || f.Reason != "could not open http://a/source/" {
		t.Errorf("no source: %v", err)
	}
}

func TestSourceThatTakesNoCheckpoint(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.readOnly = true
	a.edit("a", "{}")
	for range 2 {
		replicate(t, a, b, request()).is(t, "ok", "true", "history.0.start_last_seq", "0", "history.0.missing_checked", "1")
	}
	b.readOnly = true
	a.edit("b", "{}")
	if _, err := Run(t.Context(), options(a, b, request())); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a target that takes none: %v", err)
	}
}

// fenced is a target that changes its identity while it is written.
type fenced struct {
	*store
	before func()
}

func (f fenced) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	f.before()
	return f.store.Write(ctx, docs)
}

func TestDatabaseMadeAnew(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("a", "{}")
	target := fenced{b, func() { b.instance = "2" }}
	_, err := Run(t.Context(), options(a, target, request()))
	if err == nil || !strings.Contains(err.Error(), "instance_start_time of the target http://b/target/ has changed") {
		t.Errorf("a new instance: %v", err)
	}
	if len(a.local)+len(b.local) != 0 {
		t.Error("a checkpoint was written")
	}
}

func TestFence(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("a", "{}")
	o := options(a, b, request())
	lost := errors.New("another node owns it")
	o.Fence = func(context.Context) error { return lost }
	if _, err := Run(t.Context(), o); !errors.Is(err, lost) || len(a.local)+len(b.local) != 0 {
		t.Errorf("err %v, checkpoints %v %v", err, a.local, b.local)
	}
}

// crossed is a side whose checkpoint is written by another run as well.
type crossed struct {
	*store
	before func()
}

func (c crossed) PutLocal(ctx context.Context, id, rev string, body []byte) (string, error) {
	c.before()
	return c.store.PutLocal(ctx, id, rev, body)
}

func TestCheckpointsCross(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("a", "{}")
	once := sync.OnceFunc(func() { replicate(t, a, b, request()) })
	replicate(t, a, crossed{b, once}, request())
	a.edit("b", "{}")
	replicate(t, a, b, request()).is(t, "history.0.start_last_seq", `"1-a"`)
}

// A revision that the source does not show at once is waited for.
func TestLateRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStore("a"), newStore("b")
		a.edit("a", "{}")
		rev := a.edit("b", "{}")
		a.edit("c", "{}")
		hide := a.docs["b"].hidden
		hide[rev] = true
		time.AfterFunc(missingDelay/2, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(hide, rev)
		})
		replicate(t, a, b, request()).is(t, "history.0.docs_written", "3")
		same(t, a, b)

		rev = a.edit("b", "{}")
		hide[rev] = true
		if _, err := Run(t.Context(), options(a, b, request())); err == nil || !strings.Contains(err.Error(), "does not show revision") {
			t.Errorf("a revision that never comes: %v", err)
		}
	})
}

// busy is a source whose document is edited between its change and its reading.
type busy struct {
	*store
	id   string
	left int // edits to come
}

func (b *busy) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	if b.left > 0 {
		b.left--
		b.edit(b.id, strconv.Itoa(b.left))
	}
	return b.store.Fetch(ctx, o, wanted, take)
}

// A source that forgets the revision that its changes told of, because a later one
// has replaced it, holds up neither the others nor the replication: the later one
// comes with its own change.
func TestForgottenRevision(t *testing.T) {
	for _, continuous := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := newStore("a"), newStore("b")
			a.limit = 1
			for _, id := range []string{"a", "hot", "z"} {
				a.edit(id, "{}")
			}
			source := &busy{store: a, id: "hot", left: 20}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for source.left > 0 {
				s := request()
				s.Continuous = continuous
				if _, err := Run(ctx, options(source, b, s)); err != nil && ctx.Err() == nil {
					t.Fatal(err)
				}
				if len(b.docs) < 2 {
					t.Fatalf("%d documents", len(b.docs))
				}
			}
			if !continuous {
				replicate(t, a, b, request())
			}
			same(t, a, b)
		})
	}
}

// TestPending: what is to do follows the batches, also those that end while the source
// is asked, and is unknown until the source has told.
func TestPending(t *testing.T) {
	w := watermark{}
	w.count(-1)
	if got := w.pending(); got != -1 {
		t.Errorf("unknown: %d", got)
	}
	w.count(5)
	first, second := &batch{rows: make([]endpoint.Change, 2), seq: "2"}, &batch{rows: make([]endpoint.Change, 3), seq: "5"}
	w.add(first)
	w.add(second)
	w.complete(second)
	if got := w.pending(); got != 5 {
		t.Errorf("behind a batch that is not done: %d", got)
	}
	w.complete(first)
	if got := w.pending(); got != 0 {
		t.Errorf("all done: %d", got)
	}
	third := &batch{rows: make([]endpoint.Change, 4), seq: "9"}
	w.add(third)
	w.reached()
	w.complete(third)
	if got := w.count(6); got != 2 {
		t.Errorf("4 of 6 were done since: %d", got)
	}
	o := options(newStore("a"), newStore("b"), request())
	o.Source = unreachable{}
	if _, err := Run(t.Context(), o); err == nil || o.Progress.Snapshot().ChangesPending != -1 {
		t.Errorf("%v, %+v", err, o.Progress.Snapshot())
	}
}

// unreachable is a source that answers nothing.
type unreachable struct{ endpoint.Source }

func (unreachable) Info(context.Context) (endpoint.Info, error) {
	return endpoint.Info{}, errors.New("no answer")
}

func TestContinuous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStore("a"), newStore("b")
		a.edit("a", "{}")
		s := request()
		s.Continuous = true
		o := options(a, b, s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := Run(ctx, o)
			ended <- err
		}()
		synctest.Wait()
		same(t, a, b)
		if got := o.Progress.Snapshot(); got.ThroughSeq != `"1-a"` || got.CheckpointedSeq != "" || got.ChangesPending != 0 {
			t.Errorf("before the interval: %+v", got)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := o.Progress.Snapshot(); got.CheckpointedSeq != `"1-a"` || got.ChangesPending != 0 || a.committed != 1 || b.committed != 1 {
			t.Errorf("after it: %+v, %d checkpoints", got, a.committed)
		}
		time.Sleep(time.Hour)
		if a.committed != 1 {
			t.Errorf("%d checkpoints without a change", a.committed)
		}
		for i := range 100 {
			a.edit(fmt.Sprint(i), "{}")
		}
		synctest.Wait()
		same(t, a, b)
		if got := o.Progress.Snapshot(); got.ChangesPending != 0 {
			t.Errorf("everything is copied: %d changes pending", got.ChangesPending)
		}
		time.Sleep(10 * time.Second)
		a.edit("last", "{}")
		synctest.Wait()
		same(t, a, b)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		if got := o.Progress.Snapshot(); got.CheckpointedSeq != `"102-a"` || got.DocsWritten != 102 || a.committed != 2 {
			t.Errorf("at the end: %+v, %d checkpoints", got, a.committed)
		}
		once := request()
		replicate(t, a, b, once).is(t, "no_changes", "true")
	})
}
