package shard

import (
	"context"
	"fmt"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

func (n *node) purgeAll(items ...PurgeItem) []PurgeResult {
	n.t.Helper()
	res, err := n.Purge(context.Background(), copyName, items)
	if err != nil {
		n.t.Fatal(err)
	}
	return res
}

func (n *node) purgeLog() []PurgeInfo {
	n.t.Helper()
	log, err := n.Purges(context.Background(), copyName, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return log
}

// A purge that has been done is not done again, from any sender, also after a
// restart: the document may have been written again since.
func TestPurgeOnce(t *testing.T) {
	fs := newFS()
	n := open(t, fs, Options{})
	n.create(CreateOptions{})
	r1 := n.must(n.edit("a", "", `{"n":1}`))
	item := PurgeItem{UUID: [16]byte{1}, ID: "a", Revs: []doc.Rev{rev(t, r1)}}
	if res := n.purgeAll(item); len(res[0].Purged) != 1 {
		t.Fatalf("purged %v", res)
	}
	n.must(n.replicate("a", r1, `{"n":1}`))
	if res := n.purgeAll(item, item); len(res[0].Purged)+len(res[1].Purged) != 0 || res[0].ID != "a" {
		t.Errorf("a second time: %v", res)
	}
	n.stop()
	n = open(t, fs, Options{})
	defer n.stop()
	n.purgeAll(item)
	if got := n.show("a"); got != r1+` {"n":1}` {
		t.Errorf("the document that came back: %s", got)
	}
	if log := n.purgeLog(); len(log) != 1 {
		t.Errorf("log: %v", log)
	}
	// Requests without a uuid are all noted (golden bulk/09).
	none := PurgeItem{ID: "b", Revs: []doc.Rev{rev(t, r1)}}
	n.purgeAll(none, none)
	if log := n.purgeLog(); len(log) != 3 {
		t.Errorf("log: %v", log)
	}
}

// Compaction keeps what a follower of the log has not passed.
func TestPurgeLogIsHeld(t *testing.T) {
	n := start(t, Options{})
	for i := range 20 {
		n.purgeAll(PurgeItem{ID: fmt.Sprint(i), Revs: []doc.Rev{{Pos: 1, ID: "x"}}})
	}
	put := func(id, body string) {
		t.Helper()
		if _, err := n.LocalDocs.Put(context.Background(), copyName, id, doc.Rev{}, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	put("_local/purge-mem3-a-b", `{"purge_seq":5}`)
	put("_local/purge-mem3-a-c", `{"purge_seq":12}`)
	put("_local/purge-odd", `{"purge_seq":"x"}`)
	put("_local/purge-other", `{}`)
	for _, step := range []struct {
		move string
		left int
	}{{"", 15}, {`{"purge_seq":14}`, 8}, {`{"purge_seq":99}`, 8}} {
		if step.move != "" {
			put("_local/purge-mem3-a-b", step.move)
		}
		if err := n.compactNow(Limits{PurgedInfos: 3}); err != nil {
			t.Fatal(err)
		}
		if log := n.purgeLog(); len(log) != step.left {
			t.Errorf("%s: %d entries are left, want %d", step.move, len(log), step.left)
		}
	}
	put("_local/purge-mem3-a-c", `{"purge_seq":20}`)
	if err := n.compactNow(Limits{PurgedInfos: 3}); err != nil {
		t.Fatal(err)
	}
	if log := n.purgeLog(); len(log) != 3 {
		t.Errorf("%d entries are left, want the limit", len(log))
	}
}

// What a follower has not passed stays also when it is purged, or the follower
// comes, while a compaction is under way.
func TestPurgeLogIsHeldDuringCompaction(t *testing.T) {
	for name, follower := range map[string]string{"before": `{"purge_seq":10}`, "meanwhile": ""} {
		t.Run(name, func(t *testing.T) {
			n := start(t, Options{})
			put := func(body string) {
				t.Helper()
				_, err := n.LocalDocs.Put(context.Background(), copyName, "_local/purge-mem3-a-b", doc.Rev{}, []byte(body))
				if err != nil {
					t.Fatal(err)
				}
			}
			purge := func(from, to int) {
				t.Helper()
				for i := from; i <= to; i++ {
					n.purgeAll(PurgeItem{ID: fmt.Sprint(i), Revs: []doc.Rev{{Pos: 1, ID: "x"}}})
				}
			}
			purge(1, 12)
			if follower != "" {
				put(follower)
			}
			store, err := n.engine.Acquire(copyName)
			if err != nil {
				t.Fatal(err)
			}
			defer n.engine.Release(store)
			passes := 0
			err = n.Compactions.run(context.Background(), copyName, store, Limits{PurgedInfos: 3}, func(uint64, uint64) {
				if passes++; passes == 1 {
					put(`{"purge_seq":10}`)
					purge(13, 20)
				}
			})
			if err != nil || passes == 0 {
				t.Fatal(passes, err)
			}
			if log := n.purgeLog(); len(log) != 10 || log[0].Seq != 11 {
				t.Errorf("%d entries are left, want those from 11 to 20: %v", len(log), log)
			}
		})
	}
}

// An edit from another copy that does not know of the newest purge is refused.
func TestPurgesSeen(t *testing.T) {
	n := start(t, Options{})
	write := func(id string, seen uint64) error {
		_, err := n.Follow(context.Background(), FollowRequest{
			Copy: copyName, Edits: []Edit{replicated(t, id, "1-a", "{}")}, PurgesSeen: &seen,
		})
		return err
	}
	if err := write("a", 0); err != nil {
		t.Fatal(err)
	}
	n.purgeAll(PurgeItem{ID: "a", Revs: []doc.Rev{rev(t, "1-a")}})
	if err := write("a", 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("an edit that did not see the purge: %v", err)
	}
	if got := n.show("a"); got != "missing" {
		t.Errorf("a is %s", got)
	}
	for seen := range uint64(2) {
		if err := write("b", seen); err != nil {
			t.Errorf("a document that was not purged: %v", err)
		}
	}
	n.purgeAll(PurgeItem{ID: "z", Revs: []doc.Rev{rev(t, "1-a")}})
	if err := write("a", 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("behind a purge of another document: %v", err)
	}
}
