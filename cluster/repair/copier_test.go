package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// copier copies documents from a node to a copy of another name, as of a half of
// the range.
func (n *node) copier(to *node, copies Copies) *Copier {
	return NewCopier(n.end(n.copies()), to.end(through(copies)), shard.Limits{}, zap.NewNop())
}

// half makes a copy of a half of the range on a node of its own.
func half(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, name: "half@x", fs: newFS(), copy: strings.Replace(copyName, "ffffffff", "7fffffff", 1)}
	n.open()
	n.create(shard.CreateOptions{})
	t.Cleanup(n.stop)
	return n
}

// TestDocumentsCopiesThoseAndNoOthers: leaves, deletions, attachments and purges
// of the documents that are named, however many, and nothing else.
func TestDocumentsCopiesThoseAndNoOthers(t *testing.T) {
	a, _ := pair2(t)
	b := half(t)
	var ids []string
	for i := range 3 * documentsAtOnce {
		id := fmt.Sprintf("d%03d", i)
		r := a.put(id, doc.Rev{}, `{"n":1}`, a.attach(id, "large", 1, content(70_000+i, 'a')))
		a.branch(id, doc.Rev{}, "other", `{"n":2}`)
		if i%2 == 0 {
			a.remove(id, r)
		}
		if i%3 > 0 {
			ids = append(ids, id, id)
		}
	}
	gone := a.put("gone", doc.Rev{}, `{}`)
	other := a.put("other", doc.Rev{}, `{}`)
	if err := a.copier(b, b.copies()).Documents(t.Context(), []string{"other", "never", "gone"}); err != nil {
		t.Fatal(err)
	}
	a.purge(1, "gone", gone)
	a.purge(2, "other", other)
	b.put("b", doc.Rev{}, `{}`)
	slices.Reverse(ids)
	if err := a.copier(b, b.copies()).Documents(t.Context(), append(ids, "gone")); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range strings.Split(a.show(), "\n") {
		if slices.Contains(ids, line[:4]) {
			want = append(want, line)
		}
	}
	want = append([]string{b.showDoc("b")}, append(want, b.showDoc("other"))...)
	if got := b.show(); got != strings.Join(want, "\n") || len(want) != 2*documentsAtOnce+2 {
		t.Errorf("the target has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if log, err := b.Purges(t.Context(), b.copy, 0); err != nil || len(log) != 1 || log[0].ID != "gone" {
		t.Errorf("log of purges %v, %v", log, err)
	}
	b.check()
}

// TestDocumentsAfterPurgeMeanwhile: the copying starts over, and does not bring
// back what was purged at the target in the middle of it.
func TestDocumentsAfterPurgeMeanwhile(t *testing.T) {
	a, b := pair2(t)
	r := a.put("x", doc.Rev{}, `{}`)
	a.put("y", doc.Rev{}, `{}`)
	times := 0
	f := &meddling{Copies: b.copies(), meddle: func() {
		if times++; times < 3 {
			b.purge(byte(times), "x", r)
		}
	}}
	if err := a.copier(b, f).Documents(t.Context(), []string{"x", "y"}); err != nil {
		t.Fatal(err)
	}
	agree(t, a, b)
	if got := a.showDoc("x"); got != "x" || times < 2 {
		t.Errorf("after %d looks the purged document is %s", times, got)
	}
	always := &meddling{Copies: b.copies(), meddle: func() {
		times++
		a.branch("z", doc.Rev{}, fmt.Sprint("r", times), `{}`)
		b.purge(byte(times), "z", doc.Rev{Pos: 1, ID: fmt.Sprint("r", times-1)})
	}}
	a.branch("z", doc.Rev{}, fmt.Sprint("r", times), `{}`)
	if err := a.copier(b, always).Documents(context.Background(), []string{"z"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("with a purge for each try: %v", err)
	}
	if err := a.copier(b, nil).Documents(t.Context(), []string{"z"}); !fault.Is(err, fault.NodeDown) {
		t.Errorf("without the node: %v", err)
	}
}
