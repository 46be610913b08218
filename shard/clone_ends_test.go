package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"divan/shard/ring"
	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// A full disk ends a clone with the error that says so; with space again the next one
// goes on.
func TestCloneRangeOnAFullDisk(t *testing.T) {
	eachWay(t, func(t *testing.T, way int32) {
		t.Helper()
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{})
		defer n.stop()
		n.create(CreateOptions{})
		n.createHalves(CreateOptions{})
		ctx := context.Background()
		rng := rand.New(rand.NewPCG(1, 2))
		if err := n.scatter(ctx, rng, 20); err != nil {
			t.Fatal(err)
		}
		n.cloneHalves(t, 2000)
		if err := n.scatter(ctx, rng, 100); err != nil {
			t.Fatal(err)
		}
		for _, o := range halves {
			o.stepBytes = 1000
			disk.full.Store(way)
			if _, err := n.Clones.Range(ctx, o); !fault.Is(err, fault.InsufficientStorage) {
				t.Fatalf("the disk is full: %v", err)
			}
			disk.full.Store(space)
			pass(3 * time.Second)
		}
		n.cloneHalves(t, 5000)
		n.compareHalves(t)
	})
}

// A clone of a source that takes edits is one of some moment of it; when the edits have
// ended the next clone brings the rest.
func TestCloneRangeUnderEdits(t *testing.T) {
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	ctx := context.Background()
	var editing, cloning sync.WaitGroup
	ended := make(chan struct{})
	for i := range uint64(3) {
		editing.Go(func() {
			if err := n.scatter(ctx, rand.New(rand.NewPCG(i, 1)), 150); err != nil {
				t.Error(err)
			}
		})
	}
	for _, o := range halves {
		o.stepBytes = 3000
		cloning.Go(func() {
			last := uint64(0)
			for {
				upto, err := n.Clones.Range(ctx, o)
				if err != nil || upto < last {
					t.Error(upto, last, err)
				}
				last = upto
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	cloning.Go(func() {
		for {
			if err := n.compactNow(Limits{PurgedInfos: 2}); err != nil {
				t.Error(err)
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	editing.Wait()
	close(ended)
	cloning.Wait()
	n.cloneHalves(t, 0)
	n.compareHalves(t)
}

// The origins of a clone are its source and what that one continues, the newest first
// and no more than 16; the head of its changes tells them.
func TestCloneRangeOrigins(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	name, want := copyName, []storage.Origin(nil)
	for i := range 20 {
		for k := range 5 {
			edits := []Edit{{ID: fmt.Sprint(i, " ", k), Body: []byte("{}")}}
			if _, err := n.Decide(ctx, DecideRequest{Copy: name, NewEdits: true, Edits: edits}); err != nil {
				t.Fatal(err)
			}
		}
		next := fmt.Sprintf("shards/00000000-ffffffff/db.%010d", i)
		if err := n.Copies.Create(ctx, next, CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		upto, err := n.Clones.Range(ctx, CloneOptions{Source: name, Target: next, Range: ring.Full()})
		if err != nil || upto != uint64(5*(i+1)) {
			t.Fatal(upto, err)
		}
		n.acquire(t, name, func(s *storage.Store) {
			want = append([]storage.Origin{{UUID: s.UUID(), Upto: upto}}, want...)
		})
		s, err := n.Changes(ctx, ChangesRequest{Copy: next})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if !slices.Equal(s.Origins, want[:min(len(want), 16)]) {
			t.Fatalf("%v, want %v", s.Origins, want)
		}
		name = next
	}
}

// A target that has come from elsewhere, or has edits of its own, is left alone.
func TestCloneRangeRefuses(t *testing.T) {
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	ctx := context.Background()
	n.edit("a", "", "{}")
	n.edit("b", "", "{}")
	n.cloneHalves(t, 0)
	o := halves[0]
	refused := func(o CloneOptions) {
		t.Helper()
		was := n.feedOf(t, o.Target)
		if _, err := n.Clones.Range(ctx, o); err == nil {
			t.Error("cloned all the same")
		}
		if now := n.feedOf(t, o.Target); !slices.Equal(now, was) {
			t.Errorf("%v was %v", now, was)
		}
	}
	other := o
	other.Source = halves[1].Target
	refused(other)
	if _, err := n.Clones.Range(ctx, CloneOptions{Source: copyName, Target: "shards/none"}); !fault.Is(err, fault.NoCopy) {
		t.Error(err)
	}
	if _, err := n.Clones.Range(ctx, CloneOptions{Source: "shards/none", Target: o.Target}); !fault.Is(err, fault.NoCopy) {
		t.Error(err)
	}
	edits := []Edit{{ID: "own", Body: []byte("{}")}}
	if _, err := n.Decide(ctx, DecideRequest{Copy: o.Target, NewEdits: true, Edits: edits}); err != nil {
		t.Fatal(err)
	}
	n.edit("c", "", "{}")
	refused(o)
	n.edit("d", "", "{}")
	refused(o)
	// Also one that takes an edit while it is cloned.
	o = halves[1]
	o.Progress = func(uint64, uint64) {
		if _, err := n.Decide(ctx, DecideRequest{Copy: o.Target, NewEdits: true, Edits: edits}); err != nil {
			t.Error(err)
		}
	}
	n.edits(true, make1000(3)...)
	o.stepBytes = 1 << 30
	if _, err := n.Clones.Range(ctx, o); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}

// make1000 makes so many thousand edits of new documents.
func make1000(n int) []Edit {
	edits := make([]Edit, 1000*n)
	for i := range edits {
		edits[i] = Edit{ID: fmt.Sprint("many", i), Body: []byte("{}")}
	}
	return edits
}

// A clone of more documents than are read at once.
func TestCloneRangeOfManyDocuments(t *testing.T) {
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	n.edits(true, make1000(5)...)
	n.cloneHalves(t, 0)
	n.compareHalves(t)
	for i, e := range make1000(3) {
		if i%3 == 0 {
			n.purge(e.ID, n.changes(ChangesRequest{Filter: Filter{Kind: FilterDocIDs, IDs: []string{e.ID}}})[0].Leaves[0].String())
		}
	}
	n.cloneHalves(t, 20000)
	n.compareHalves(t)
}

// A clone ends with its context and with the Local, which waits for it, and leaves
// what the next one goes on with.
func TestCloneRangeEnds(t *testing.T) {
	fs := newFS()
	n := open(t, fs, Options{})
	n.create(CreateOptions{})
	n.createHalves(CreateOptions{})
	if err := n.scatter(context.Background(), rand.New(rand.NewPCG(3, 4)), 200); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := halves[0]
	o.stepBytes = 1000
	o.Progress = func(uint64, uint64) { cancel() }
	if _, err := n.Clones.Range(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	o = halves[1]
	o.stepBytes = 1000
	looked := make(chan struct{})
	var once sync.Once
	o.Progress = func(uint64, uint64) {
		once.Do(func() { close(looked) })
		<-n.states.closing
	}
	var cloning sync.WaitGroup
	cloning.Go(func() {
		if _, err := n.Clones.Range(context.Background(), o); !fault.Is(err, fault.Closed) {
			t.Errorf("closed: %v", err)
		}
	})
	<-looked
	n.stop()
	cloning.Wait()
	if _, err := n.Clones.Range(context.Background(), o); !fault.Is(err, fault.Closed) {
		t.Errorf("closed before: %v", err)
	}
	n = open(t, fs, Options{})
	defer n.stop()
	n.cloneHalves(t, 10000)
	n.compareHalves(t)
}

// Documents with more attachments than a batch should hold, with large bodies and with
// many conflicts.
func TestCloneRangeOfLargeDocuments(t *testing.T) {
	storagetest.SkipShort(t)
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	for round := range 2 {
		for d := range 4 {
			e := Edit{ID: fmt.Sprint("atts", d), Path: path(t, fmt.Sprintf("1-%d", round)), Body: []byte("{}")}
			for i := range 60 {
				data := bytes.Repeat([]byte{byte(i), byte(d), byte(round)}, 30<<10)
				e.Atts = append(e.Atts, EditAttachment{Data: data, Attachment: doc.Attachment{
					Name: fmt.Sprint(i), Length: int64(len(data)), StoredLength: int64(len(data)), Digest: digest(string(data)),
				}})
			}
			n.must(n.edits(false, e)[0])
			n.replicate(fmt.Sprint("large", d), fmt.Sprintf("1-%d", round), string(body(3<<20)))
			var edits []Edit
			for i := range 300 {
				edits = append(edits, replicated(t, fmt.Sprint("conflicts", d), fmt.Sprintf("1-%d%d", round, i), string(body(100))))
			}
			n.edits(false, edits...)
		}
		n.cloneHalves(t, 0)
		n.compareHalves(t)
	}
}
