package shard

import (
	"context"
	"slices"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// lastPaths returns the paths of the newest entry of the log.
func (n *node) lastPaths() []doc.Path {
	n.t.Helper()
	log := n.purgeLog()
	return log[len(log)-1].Paths
}

// A copy ends in the same state no matter which it gets first: the revision,
// the purge, or another copy's paths of it.
func TestPurgeOfWhatHasNotArrived(t *testing.T) {
	with := []doc.Path{{Start: 3, IDs: []string{"c", "b", "a"}}}
	plain := PurgeItem{UUID: [16]byte{1}, ID: "d", Revs: []doc.Rev{rev(t, "3-c")}}
	told := plain
	told.Paths = with
	first := func(n *node) { n.must(n.replicate("d", "1-a", `{}`)) }
	for name, do := range map[string]func(n *node){
		"revision first": func(n *node) {
			n.must(n.replicate("d", "3-c b a", `{}`))
			n.purgeAll(plain)
		},
		"told at once":   func(n *node) { first(n); n.purgeAll(told) },
		"told later":     func(n *node) { first(n); n.purgeAll(plain); n.purgeAll(told) },
		"told in one go": func(n *node) { first(n); n.purgeAll(plain, told, plain, told) },
		"told before":    func(n *node) { n.purgeAll(told) },
		"told in two bits": func(n *node) {
			first(n)
			short := plain
			short.Paths = []doc.Path{{Start: 3, IDs: []string{"c", "b"}}}
			n.purgeAll(short)
			n.purgeAll(told)
		},
	} {
		n := start(t, Options{})
		do(n)
		if got := n.show("d"); got != "missing" {
			t.Errorf("%s: the document is %s", name, got)
		}
		if got := n.lastPaths(); len(got) != 1 || got[0].Start != 3 || !slices.Equal(got[0].IDs, with[0].IDs) {
			t.Errorf("%s: the log knows %v", name, got)
		}
		before := len(n.purgeLog())
		n.purgeAll(told, plain)
		if after := len(n.purgeLog()); after != before || after > 2 {
			t.Errorf("%s: %d entries in the log, then %d", name, before, after)
		}
	}
}

// What others descend from stays, and so does what was written after a copy
// knew what the purge removed.
func TestLostRevisionsThatStay(t *testing.T) {
	n := start(t, Options{})
	item := PurgeItem{UUID: [16]byte{1}, ID: "d", Revs: []doc.Rev{rev(t, "2-b")}, Paths: []doc.Path{{Start: 2, IDs: []string{"b", "a"}}}}
	n.must(n.replicate("d", "2-x a", `{"x":1}`))
	n.purgeAll(item)
	if got := n.show("d"); got != `2-x {"x":1}` {
		t.Errorf("a branch beside the purged one: %s", got)
	}
	item.UUID, item.ID = [16]byte{2}, "e"
	n.purgeAll(item)
	n.must(n.replicate("e", "1-a", `{"n":1}`))
	n.purgeAll(item)
	if got := n.show("e"); got != `1-a {"n":1}` {
		t.Errorf("written again: %s", got)
	}
}

// An edit that another copy decided is refused when its revision or one on top
// of it was purged; an edit of a client that still waits is not, nor one of a
// sender that has done the purge.
func TestEditOfPurgedRevision(t *testing.T) {
	n := start(t, Options{})
	n.purgeAll(PurgeItem{ID: "d", Revs: []doc.Rev{rev(t, "2-b")}, Paths: []doc.Path{{Start: 2, IDs: []string{"b", "a"}}}})
	edits := func(path string) []Edit {
		return []Edit{replicated(t, "d", path, "{}"), replicated(t, "other", path, "{}")}
	}
	follow := func(path string, seen *uint64) error {
		t.Helper()
		refused, err := n.Follow(context.Background(), FollowRequest{Copy: copyName, Edits: edits(path), PurgesSeen: seen})
		if err != nil {
			t.Fatal(err)
		}
		if refused[1] != nil {
			t.Errorf("another document: %v", refused[1])
		}
		return refused[0]
	}
	insist := func(path string) error {
		t.Helper()
		res, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, Edits: edits(path), Insist: true})
		if err != nil {
			t.Fatal(err)
		}
		if res[1].Err != nil {
			t.Errorf("another document: %v", res[1].Err)
		}
		return res[0].Err
	}
	for _, path := range []string{"1-a", "2-b a"} {
		if err := follow(path, nil); !fault.Is(err, fault.Purged) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := n.show("d"); got != "missing" {
		t.Errorf("the document is %s", got)
	}
	seen := uint64(1)
	for _, err := range []error{follow("2-c a", nil), insist("1-a"), follow("2-b a", &seen), follow("2-b a", nil)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// A decision that makes a purged revision may be late: it is made only for a
// sender that insists, with all edits of the document together.
func TestDecisionOfPurgedRevision(t *testing.T) {
	n := start(t, Options{})
	other := []byte(`{"other":1}`)
	first := n.edit("d", "", `{"n":1}`)
	n.purgeAll(PurgeItem{ID: "d", Revs: []doc.Rev{first.Rev}})
	req := DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{
		{ID: "d", Body: []byte(`{"n":1}`)},
		{ID: "e", Body: other},
		{ID: "d", Parent: first.Rev, Body: []byte(`{"n":2}`)},
		{ID: "d", Body: other},
		{ID: "_local/l", Body: other},
	}}
	show := func() string { return n.show("d") + ", " + n.show("e") }
	want := func(state string, kinds ...fault.Kind) {
		t.Helper()
		res, err := n.Decide(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range kinds {
			if fault.KindOf(res[i].Err) != k && (k != 0 || res[i].Err != nil) {
				t.Errorf("edit %d: %v", i, res[i].Err)
			}
		}
		if got := show(); got != state {
			t.Errorf("%s, want %s", got, state)
		}
	}
	want("missing, "+n.must(n.edit("f", "", `{"other":1}`))+` {"other":1}`, fault.Purged, 0, fault.Purged, fault.Purged, 0)
	req.Edits, req.Insist = append(req.Edits[:1:1], req.Edits[2:4]...), true
	second := doc.Rev{Pos: 2, ID: doc.NewRevID(false, first.Rev, []byte(`{"n":2}`), nil)}
	want(second.String()+` {"n":2}, `+n.show("f"), 0, 0, fault.Conflict)
	// A replicated edit of a client is a decision, too.
	late := DecideRequest{Copy: copyName, Edits: []Edit{{ID: "d", Path: doc.Path{Start: 1, IDs: []string{"q"}}, Body: other}}}
	n.purgeAll(PurgeItem{ID: "d", Revs: []doc.Rev{{Pos: 1, ID: "q"}}})
	if res, err := n.Decide(context.Background(), late); err != nil || !fault.Is(res[0].Err, fault.Purged) {
		t.Errorf("%+v, %v", res, err)
	}
}
