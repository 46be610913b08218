package repair

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestPurgesInAnyOrder: edits and purges reach three copies in any order, some
// never, with pushes in between that are interrupted by further ones. In the
// end all copies hold the same, and of what was purged and not written again no
// leaf is left, nor has an ancestor of it become one.
func TestPurgesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ordering{history: history{t: t}, paths: map[doc.Rev]doc.Path{}, wrote: map[doc.Rev]int{}, gone: map[doc.Rev]int{}}
		for i := range 3 {
			n := newNode(t, string(rune('a'+i))+"@x")
			defer n.stop()
			// From now on the logs wait for the other copies.
			n.purge(byte(250+i), "none", doc.Rev{Pos: 1, ID: "x"})
			o.nodes = append(o.nodes, n)
		}
		o.pushAll()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			o.step(true)
		}
		for range 4 {
			o.pushAll()
		}
		agree(t, o.nodes...)
		o.verify()
	})
}

// A document is purged and written again while a push is under way: the target
// does the purge after it has been found to have what was written.
func TestWrittenAgainDuringPush(t *testing.T) {
	a, b := pair2(t)
	r := a.put("x", doc.Rev{}, `{}`)
	a.sync(b)
	b.sync(a)
	a.put("y", doc.Rev{}, `{}`)
	fetches := 0
	busy := interruptedFetch{interrupted{Copies: b.copies(), between: func() {}}, func() {
		if fetches++; fetches == 1 {
			a.purge(1, "x", r)
			a.put("x", doc.Rev{}, `{}`)
		}
	}}
	if _, err := a.pushTo(b, busy).run(context.Background()); err != nil || fetches == 0 {
		t.Fatal(fetches, err)
	}
	b.sync(a)
	a.sync(b)
	agree(t, a, b)
	if got := b.showDoc("x"); got == "x" {
		t.Error("what was written again is gone")
	}
}

// interruptedFetch does something before the target's log of purges is read.
type interruptedFetch struct {
	interrupted
	fetch func()
}

func (i interruptedFetch) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	i.fetch()
	return i.Copies.Purges(ctx, name, since)
}

// A purge is told on to a copy that did it without knowing what it removed, by
// one that has learned it from a third.
func TestLostAncestorsAreToldOn(t *testing.T) {
	a, b := pair2(t)
	c := newNode(t, "c@x")
	defer c.stop()
	r1 := a.put("x", doc.Rev{}, `{"n":1}`)
	a.sync(b)
	a.sync(c)
	r2 := a.put("x", r1, `{"n":2}`)
	for _, n := range []*node{b, c, a} {
		n.purge(7, "x", r2)
	}
	a.sync(b) // a and c do not meet any more
	if got := b.showDoc("x"); got != "x" {
		t.Errorf("b has %s", got)
	}
	b.sync(c)
	agree(t, a, b, c)
	for range 3 {
		c.sync(b)
		b.sync(c)
		b.sync(a)
	}
	for n, want := range map[*node]uint64{a: 1, b: 2, c: 2} {
		if got := n.info().PurgeSeq; got != want {
			t.Errorf("%s has %d entries, want %d", n.name, got, want)
		}
	}
}

// ordering is edits and purges on their way.
type ordering struct {
	history
	under []delivery      // what is under way
	now   int             // counts what clients do
	wrote map[doc.Rev]int // when a client wrote a revision the last time
	gone  map[doc.Rev]int // when the first copy did the last purge that removed a revision, or one on top of it
	paths map[doc.Rev]doc.Path
}

// delivery is an edit or a purge on its way to a node.
type delivery struct {
	to   *node
	rev  doc.Rev // of an edit
	done func()
}

func (o *ordering) pushAll() {
	for _, a := range o.nodes {
		for _, b := range o.nodes {
			if a != b {
				o.push(a, b)
			}
		}
	}
}

func (o *ordering) step(pushes bool) {
	t := o.t
	n := o.node("node")
	kinds := []string{"create", "edit", "edit", "branch", "delete", "purge", "purge", "arrive", "arrive", "arrive", "lose", "compact"}
	if pushes {
		kinds = append(kinds, "push", "push", "busy push")
	}
	id := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "id")
	switch rapid.SampledFrom(kinds).Draw(t, "step") {
	case "create", "edit":
		e := shard.Edit{ID: id, Parent: o.live(n, id), Body: fmt.Appendf(nil, `{%q:%d}`, id, rapid.IntRange(0, 1).Draw(t, "x"))}
		o.sent(n, e, n.write(e))
	case "delete":
		if r := o.live(n, id); !r.IsZero() {
			e := shard.Edit{ID: id, Parent: r, Deleted: true, Body: fmt.Appendf(nil, `{%q:0}`, id)}
			o.sent(n, e, n.write(e))
		}
	case "branch":
		parent := o.live(n, id)
		e := shard.Edit{ID: id, Body: []byte(`{"b":1}`)}
		o.sent(n, e, n.branch(id, parent, fmt.Sprint("branch of ", id, parent), `{"b":1}`))
	case "purge":
		o.purgeAt(n, id)
	case "arrive":
		if len(o.under) > 0 {
			i := rapid.IntRange(0, len(o.under)-1).Draw(t, "which")
			f := o.under[i]
			o.under = slices.Delete(o.under, i, i+1)
			f.done()
		}
	case "lose":
		if len(o.under) > 0 {
			o.under = slices.Delete(o.under, 0, 1)
		}
	case "push":
		if to := o.node("to"); to != n {
			o.push(n, to)
		}
	case "busy push":
		if to := o.node("to"); to != n {
			o.busyPush(n, to)
		}
	case "compact":
		if err := n.Compactions.Start(context.Background(), n.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
		for len(n.Compactions.Running()) > 0 {
			runtime.Gosched()
		}
		// The log of purges is bounded, and refuses what it remembers only. An edit is under way for seconds, in
		// which as many purges as a log keeps, and a compaction, do not overtake it.
		o.under = slices.DeleteFunc(o.under, func(d delivery) bool { return d.to == n && o.gone[d.rev] > o.wrote[d.rev] })
	}
}

// sent sends what a client wrote through one copy to the others.
func (o *ordering) sent(n *node, e shard.Edit, r doc.Rev) {
	o.now++
	o.wrote[r] = o.now
	found, err := n.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: n.copy, ID: e.ID, Revs: []doc.Rev{r}, WithPath: true})
	if err != nil || found[0].Doc == nil {
		o.t.Fatal("what was written is not there", err)
	}
	e.Parent, e.Path = doc.Rev{}, found[0].Doc.Revisions
	o.paths[r] = e.Path
	for _, to := range o.nodes {
		if to == n {
			continue
		}
		o.under = append(o.under, delivery{to, r, func() {
			res, err := to.Follow(context.Background(), shard.FollowRequest{Copy: to.copy, Edits: []shard.Edit{e}})
			if err == nil && !fault.Is(res[0], fault.Purged) { // left to repair
				err = res[0]
			}
			if err != nil {
				o.t.Fatal(err)
			}
		}})
	}
}

// purgeAt purges a revision that some copy has, through a copy that may not.
func (o *ordering) purgeAt(n *node, id string) {
	var some []doc.Rev
	for _, m := range o.nodes {
		leaves, err := m.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: m.copy, ID: id, All: true})
		if err != nil {
			o.t.Fatal(err)
		}
		for _, l := range leaves {
			some = append(some, l.Rev)
		}
	}
	if len(some) == 0 {
		return
	}
	o.uuid++
	item := shard.PurgeItem{UUID: [16]byte{o.uuid}, ID: id, Revs: []doc.Rev{rapid.SampledFrom(some).Draw(o.t, "rev")}}
	o.now++
	at := o.now
	do := func(m *node) {
		res, err := m.Purge(context.Background(), m.copy, []shard.PurgeItem{item})
		if err != nil {
			o.t.Fatal(err)
		}
		for _, r := range res[0].Purged {
			for k, id := range o.paths[r].IDs {
				up := doc.Rev{Pos: r.Pos - uint64(k), ID: id}
				o.gone[up] = max(o.gone[up], at)
			}
		}
	}
	do(n)
	for _, m := range o.nodes {
		if m != n {
			o.under = append(o.under, delivery{to: m, done: func() { do(m) }})
		}
	}
}

// busyPush pushes while other things happen.
func (o *ordering) busyPush(from, to *node) {
	p := from.pushTo(to, interrupted{Copies: to.copies(), between: func() {
		if rapid.IntRange(0, 2).Draw(o.t, "between") == 0 {
			o.step(false)
		}
	}})
	p.batch = 1
	if _, err := p.run(context.Background()); err != nil && !fault.Is(err, fault.Conflict) {
		o.t.Fatalf("push %s to %s: %v", from.name, to.name, err)
	}
}

// verify fails when a revision is left that was purged and not written since.
func (o *ordering) verify() {
	for _, n := range o.nodes {
		for _, id := range []string{"p", "q"} {
			leaves, err := n.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: n.copy, ID: id, All: true})
			if err != nil {
				o.t.Fatal(err)
			}
			for _, l := range leaves {
				if o.gone[l.Rev] > o.wrote[l.Rev] {
					o.t.Fatalf("%s has %s %s, which was purged", n.name, id, l.Rev)
				}
			}
		}
		n.check()
	}
}

// interrupted does something before each of the calls that move something.
type interrupted struct {
	Copies
	between func()
}

func (i interrupted) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	i.between()
	return i.Copies.Missing(ctx, name, ids)
}

func (i interrupted) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	i.between()
	return i.Copies.Follow(ctx, req)
}

func (i interrupted) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	i.between()
	return i.Copies.Purge(ctx, name, items)
}

func (i interrupted) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	i.between()
	return i.Copies.Purges(ctx, name, since)
}

func (i interrupted) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	i.between()
	return i.Copies.Position(ctx, name)
}
