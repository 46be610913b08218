package repair

import (
	"context"
	"fmt"
	"io"
	"testing"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// pair starts two nodes with empty copies.
func pair2(t *testing.T) (a, b *node) {
	t.Helper()
	a, b = newNode(t, "a@x"), newNode(t, "b@x")
	t.Cleanup(a.stop)
	t.Cleanup(b.stop)
	return a, b
}

func TestPushBringsEverything(t *testing.T) {
	a, b := pair2(t)
	for i := range 1200 {
		a.put(fmt.Sprintf("d%04d", i), doc.Rev{}, fmt.Sprintf(`{"n":%d}`, i))
	}
	r1 := a.put("conflict", doc.Rev{}, `{"n":1}`)
	r2 := a.put("conflict", r1, `{"n":2}`)
	a.put("conflict", r2, `{"n":3}`)
	b.sync(a)
	b.branch("conflict", doc.Rev{}, "elsewhere", `{"b":1}`)
	a.branch("conflict", r1, "branch", `{"n":4}`)
	gone := a.put("gone", doc.Rev{}, `{}`)
	a.remove("gone", gone)
	a.put("_design/x", doc.Rev{}, `{"views":{}}`)
	if _, err := a.LocalDocs.Put(context.Background(), copyName, "_local/mine", doc.Rev{}, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	o, err := a.pushTo(b, b.copies()).run(context.Background())
	if err != nil || o.more || o.upto != a.info().Seq || o.behind != 0 {
		t.Fatalf("outcome %+v, %v", o, err)
	}
	b.sync(a)
	agree(t, a, b)
	a.check()
	b.check()
	if _, err := b.LocalDocs.Get(context.Background(), copyName, "_local/mine"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a local document was pushed: %v", err)
	}
	// Nothing is left to do, so nothing is written.
	before := []uint64{a.info().Seq, b.info().Seq}
	if o := a.sync(b); o.behind != 0 {
		t.Errorf("a second time %+v", o)
	}
	if after := []uint64{a.info().Seq, b.info().Seq}; after[0] != before[0] || after[1] != before[1] {
		t.Errorf("sequences moved from %d to %d", before, after)
	}
}

func TestPushTakesTurns(t *testing.T) {
	a, b := pair2(t)
	for i := range 100 {
		a.put(fmt.Sprintf("d%04d", i), doc.Rev{}, `{}`)
	}
	turns := 0
	for more := true; more; turns++ {
		p := a.pushTo(b, b.copies())
		p.batch, p.turn = 10, 3
		o, err := p.run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if more = o.more; more && o.upto != uint64(30*(turns+1)) {
			t.Errorf("turn %d ended at %d", turns, o.upto)
		}
	}
	if turns != 4 {
		t.Errorf("%d turns", turns)
	}
	agree(t, a, b)
}

func TestPushAttachments(t *testing.T) {
	a, b := pair2(t)
	small, large, other := content(1000, 'a'), content(300_000, 'b'), content(200_000, 'c')
	r1 := a.put("d", doc.Rev{}, `{"n":1}`, a.attach("d", "small", 0, small), a.attach("d", "large", 1, large), a.attach("d", "none", 0, []byte{}))
	a.sync(b)
	agree(t, a, b)
	// A newer revision keeps one, replaces one, and a conflict shares content.
	stub := func(name string) shard.EditAttachment {
		return shard.EditAttachment{Attachment: doc.Attachment{Name: name}, Stub: true}
	}
	a.put("d", r1, `{"n":2}`, stub("large"), a.attach("d", "small", 2, other))
	key := a.attach("e", "shared", 3, large)
	key.RevPos, key.HasRevPos = 1, true
	for _, rev := range []string{"x", "y"} {
		res, err := a.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{{
			ID: "e", Path: doc.Path{Start: 1, IDs: []string{rev}}, Body: []byte(`{}`), Atts: []shard.EditAttachment{key},
		}}})
		if err != nil || res[0].Err != nil {
			t.Fatal(err, res)
		}
	}
	c := &counting{Copies: b.copies()}
	if _, err := a.pushTo(b, c).run(context.Background()); err != nil {
		t.Fatal(err)
	}
	agree(t, a, b)
	if want := 2; c.uploads != want { // the new one of d, one for both revisions of e
		t.Errorf("%d uploads, want %d", c.uploads, want)
	}
	a.check()
	b.check()
}

// counting counts what a push asks of its target.
type counting struct {
	Copies
	uploads, updates, asked int
}

func (c *counting) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	c.uploads++
	return c.Copies.PutAttachment(ctx, name, id, key)
}

func (c *counting) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	c.updates++
	return c.Copies.Follow(ctx, req)
}

func (c *counting) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	c.asked += len(ids)
	return c.Copies.Missing(ctx, name, ids)
}

// No message grows with what a document has: neither with its attachments, small
// as each of them may be, nor with its conflicts.
func TestParcelsAreBounded(t *testing.T) {
	a, b := pair2(t)
	var many []shard.EditAttachment
	for i := range 40 {
		many = append(many, a.attach("many", fmt.Sprint(i), 0, content(60_000, byte(i))))
	}
	many = append(many, a.attach("many", "none", 0, nil))
	r1 := a.put("many", doc.Rev{}, `{}`, many...)
	for i := range 10 {
		id := fmt.Sprint("c", i%2) // four or five conflicts, of which no two fit into a parcel
		e := shard.Edit{ID: id, Path: doc.Path{Start: 1, IDs: []string{fmt.Sprint("r", i)}}, Body: []byte(`{}`)}
		if i%2 == 0 {
			e.Body = []byte(`{"x":"` + string(content(700_000, 'a')) + `"}`)
		} else {
			for k := range 10 {
				e.Atts = append(e.Atts, a.attach(id, fmt.Sprint(k), 0, content(60_000, byte(i+k))))
			}
		}
		res, err := a.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{e}})
		if err != nil || res[0].Err != nil {
			t.Fatal(err, res)
		}
	}
	w := &weighing{counting: counting{Copies: b.copies()}}
	push := func() {
		t.Helper()
		if _, err := a.pushTo(b, w).run(context.Background()); err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
	}
	push()
	if w.most > parcelBytes {
		t.Errorf("%d bytes in one message", w.most)
	}
	if want := (40*60_000-parcelBytes)/60_000 + 1; w.uploads < want || w.uploads > want+1 {
		t.Errorf("%d uploads, want those that do not fit into a message: %d", w.uploads, want)
	}
	// What the target has is not sent again, unless it turns out not to have it.
	for i := range many {
		many[i] = shard.EditAttachment{Attachment: doc.Attachment{Name: many[i].Name}, Stub: true}
	}
	r2 := a.put("many", r1, `{"n":2}`, many...)
	w.uploads, w.most = 0, 0
	push()
	if w.uploads != 0 || w.most > 10_000 {
		t.Errorf("%d uploads, %d bytes for a revision with stubs", w.uploads, w.most)
	}
	a.put("many", r2, `{"n":3}`, many...)
	w.lost = true
	push()
	if w.uploads == 0 || w.most > parcelBytes {
		t.Errorf("contents are lost: %d uploads, %d bytes in one message", w.uploads, w.most)
	}
	a.check()
	b.check()
}

// weighing is counting that also notes how much there is in the largest update,
// and may have lost all contents.
type weighing struct {
	counting
	most int
	lost bool
}

func (w *weighing) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	bytes := 0
	for _, e := range req.Edits {
		bytes += len(e.ID) + len(e.Body)
		for _, a := range e.Atts {
			bytes += len(a.Name) + len(a.Data)
		}
	}
	w.most = max(w.most, bytes)
	return w.counting.Follow(ctx, req)
}

func (w *weighing) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	if w.lost {
		return nil, fault.New(fault.NotFound, "")
	}
	return w.counting.ReadAttachment(ctx, r)
}

// What an interrupted push has left at the target is used, as long as it is
// there.
func TestContentThatIsThereIsNotPushedAgain(t *testing.T) {
	a, b := pair2(t)
	large := content(300_000, 'a')
	left := b.attach("d", "large", 1, large)
	a.put("d", doc.Rev{}, `{}`, a.attach("d", "large", 1, large))
	drop := &meddling{Copies: b.copies(), uploaded: func() {
		if err := b.Attachments.Drop(context.Background(), b.copy, "d", [][16]byte{left.Key}); err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := a.pushTo(b, drop).run(context.Background()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the content has gone meanwhile: %v", err)
	}
	b.attach("d", "large", 1, large)
	c := &counting{Copies: b.copies()}
	if _, err := a.pushTo(b, c).run(context.Background()); err != nil || c.uploads != 0 {
		t.Errorf("%d uploads, %v", c.uploads, err)
	}
	agree(t, a, b)
	b.check()
}

func TestPushPurges(t *testing.T) {
	a, b := pair2(t)
	ra := a.put("both", doc.Rev{}, `{"n":1}`)
	rb := a.put("branchy", doc.Rev{}, `{"n":1}`)
	a.branch("branchy", doc.Rev{}, "zz", `{"n":2}`)
	kept := a.put("kept", doc.Rev{}, `{}`)
	a.sync(b)
	b.sync(a)
	agree(t, a, b)
	a.purge(1, "both", ra)
	b.purge(2, "branchy", rb)
	b.put("both2", doc.Rev{}, `{}`)
	b.sync(a) // does both directions: what a purged must not come back from b
	agree(t, a, b)
	if got := a.showDoc("both"); got != "both" {
		t.Errorf("a purged document is back: %s", got)
	}
	a.sync(b)
	b.sync(a)
	for _, n := range []*node{a, b} {
		log, err := n.Purges(context.Background(), copyName, 0)
		if err != nil || len(log) != 2 {
			t.Errorf("%s: log of purges %v, %v", n.name, log, err)
		}
	}
	// A purge of something that is written again later stays a thing of the past.
	a.purge(3, "kept", kept)
	a.put("kept", doc.Rev{}, `{}`)
	a.sync(b)
	b.sync(a)
	a.sync(b)
	agree(t, a, b)
	if got := a.showDoc("kept"); got == "kept" {
		t.Error("a document that was written again is gone")
	}
	a.check()
	b.check()
}

// A copy that was lost is filled again, also with the purges it has to know.
func TestPushToCopyThatWasLost(t *testing.T) {
	a, b := pair2(t)
	var revs []doc.Rev
	for i := range 50 {
		revs = append(revs, a.put(fmt.Sprint(i), doc.Rev{}, `{}`))
	}
	a.sync(b)
	b.sync(a)
	a.purge(1, "7", revs[7])
	a.sync(b)
	b.lose(shard.CreateOptions{})
	b.put("new", doc.Rev{}, `{}`)
	b.sync(a)
	a.sync(b)
	agree(t, a, b)
	if n := b.info().Live; n != 50 {
		t.Errorf("%d documents", n)
	}
	if log, err := b.Purges(context.Background(), copyName, 0); err != nil || len(log) != 1 {
		t.Errorf("log of purges %v, %v", log, err)
	}
}
