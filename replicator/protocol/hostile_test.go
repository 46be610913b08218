package protocol

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// For any document that a source keeps in place of the checkpoint: answers, and checkpoints on the
// target, have the members that checkpoints have, with values of their kind.
func TestCheckpointMembers(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("x", "{}")
	first := replicate(t, a, b, request())
	for id, l := range a.local {
		old := l.body
		l.body = bytes.Replace(l.body, []byte(`{"session_id":`), []byte(`{"ok":false,"error":"evil","docs_read":"evil","end_time":{"a":"evil"},"start_time":"`+
			strings.Repeat("evil", 100)+`","session_id":`), 1)
		l.body = bytes.Replace(l.body, []byte(`"history":[{`), []byte(`"history":["evil",{"evil":1,"bulk_get_docs":-1,"end_last_seq":{"evil":2},`), 1)
		if len(l.body) < len(old)+400 {
			t.Fatalf("nothing was put into %s", old)
		}
		a.local[id] = l
	}
	again := replicate(t, a, b, request())
	again.is(t, "ok", "true", "no_changes", "true", "session_id", first.at("session_id"), "source_last_seq", first.at("source_last_seq"),
		"start_time", "", "end_time", "", "docs_read", "", "history.0.session_id", first.at("session_id"),
		"history.0.recorded_seq", first.at("history.0.recorded_seq"), "history.0.docs_written", "1", "history.1", "")
	a.edit("y", "{}")
	third := replicate(t, a, b, request())
	third.is(t, "history.0.start_last_seq", first.at("source_last_seq"), "history.1.session_id", first.at("session_id"), "history.2", "")
	for _, text := range []string{string(again), string(third)} {
		if strings.Contains(text, "evil") {
			t.Errorf("%s", text)
		}
	}
	for _, l := range b.local {
		if bytes.Contains(l.body, []byte("evil")) {
			t.Errorf("the target's checkpoint: %s", l.body)
		}
	}
}

// A history of another server is kept up to a size.
func TestLongHistory(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"session_id":"s0","source_last_seq":1,"history":[`)
	for n := range 400 {
		if n > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"session_id":"s%d","recorded_seq":"%s"}`, n, strings.Repeat("x", 10_000))
	}
	text.WriteString("]}")
	h := checkpointOf(t, text.String())
	if n := len(h.sessions); n < 20 || n > 30 || len(h.text) > maxHistoryBytes+100_000 {
		t.Errorf("%d sessions, %d bytes", n, len(h.text))
	}
	long := checkpointOf(t, `{"session_id":"s","source_last_seq":"`+strings.Repeat("x", maxSeqBytes)+`"}`)
	if long.last != "" {
		t.Errorf("a position of %d bytes", len(long.last))
	}
}

// refusing is a source that has documents which no target would take.
type refusing struct {
	*store
	id string
}

// Fetch implements endpoint.Source.
func (r *refusing) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	var others []endpoint.Wanted
	for _, w := range wanted {
		if w.ID != r.id {
			others = append(others, w)
			continue
		}
		for _, rev := range w.Revs {
			if err := o.Refused(w.ID, rev, fault.New(fault.DocumentTooLarge, w.ID)); err != nil {
				return err
			}
		}
	}
	return r.store.Fetch(ctx, o, others, take)
}

// A document that no target would take is counted, and the others are copied.
func TestPassedOver(t *testing.T) {
	a, b := &refusing{newStore("a"), "b"}, newStore("b")
	for _, id := range []string{"a", "b", "c"} {
		a.edit(id, "{}")
	}
	replicate(t, a, b, request()).is(t, "history.0.docs_written", "2", "history.0.doc_write_failures", "1", "source_last_seq", `"3-a"`)
	if got := b.leaves(); strings.Contains(got, "b@") || !strings.Contains(got, "c") {
		t.Errorf("%s", got)
	}
}

// weighing is a target that notes what memory is taken while it is written to.
type weighing struct {
	*store
	budget *memory.Budget
	least  int64 // taken for each byte that is written, times 100
}

// Write implements endpoint.Target.
func (c *weighing) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	size := int64(0)
	for _, d := range docs {
		size += int64(len(d.Body))
	}
	if share := 100 * c.budget.Used() / size; c.least == 0 || share < c.least {
		c.least = share
	}
	return c.store.Write(ctx, docs)
}

// What is under way is counted, and given back when it has come or failed.
func TestMemoryOfRun(t *testing.T) {
	budget := memory.NewBudget(func() int64 { return 16 << 20 })
	shares := memory.ForReplications(budget)
	a, b := newStore("a"), &weighing{store: newStore("b"), budget: budget}
	for n := range 300 {
		a.edit(fmt.Sprint(n), `{"v":"`+strings.Repeat("x", 10_000)+`"}`)
	}
	o := options(a, b, request())
	o.Memory = shares.Owner("account ada")
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if b.least < 100*endpoint.MemoryFactor || budget.Used() != 0 {
		t.Errorf("%d percent of what is written was taken, %d bytes after it", b.least, budget.Used())
	}
	a.edit("large", `{"v":"`+strings.Repeat("x", 4<<20)+`"}`)
	if _, err := Run(t.Context(), o); !fault.Is(err, fault.RequestTooLarge) || !strings.Contains(fault.Reason(err), "max_body_memory") {
		t.Errorf("%v", err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are taken after a failure", budget.Used())
	}
}

// The size of a document counts what it has without a body.
func TestSizes(t *testing.T) {
	d := endpoint.Doc{ID: "x", Path: doc.Path{Start: 1000, IDs: make([]string, 1000)}, Atts: make([]endpoint.Attachment, 1000)}
	c := endpoint.Change{ID: "x", Seq: endpoint.Seq(strings.Repeat("x", 60_000))}
	if d.Size() < 200_000 || c.Size() < 60_000 {
		t.Errorf("%d and %d bytes", d.Size(), c.Size())
	}
}
