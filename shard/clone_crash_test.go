package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// scatter edits the copy at random: conflicts, deletions, attachments of all sizes,
// purges.
func (n *node) scatter(ctx context.Context, rng *rand.Rand, requests int) error {
	for range requests {
		var err error
		switch rng.IntN(8) {
		case 0:
			err = n.scatterContent(ctx, rng)
		case 1:
			err = n.scatterPurge(ctx, rng)
		default:
			edits := make([]Edit, 1+rng.IntN(30))
			for k := range edits {
				e := &edits[k]
				e.ID, e.Body, e.Deleted = fmt.Sprintf("doc%d", rng.IntN(200)), body(rng.IntN(3000)), rng.IntN(6) == 0
				e.Path = doc.Path{Start: uint64(1 + rng.IntN(3)), IDs: []string{fmt.Sprintf("r%x", rng.Uint64())}}
				if rng.IntN(5) == 0 {
					text := fmt.Sprint("content ", rng.Uint64())
					e.Atts = []EditAttachment{{
						Attachment: doc.Attachment{Name: "small", Length: int64(len(text)), StoredLength: int64(len(text)), Digest: digest(text)},
						Data:       []byte(text),
					}}
				}
			}
			_, err = n.Decide(ctx, DecideRequest{Copy: copyName, Edits: edits, Insist: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) scatterContent(ctx context.Context, rng *rand.Rand) error {
	id, key := fmt.Sprintf("att%d", rng.IntN(20)), newKey()
	size := 1 + rng.IntN(400<<10)
	if rng.IntN(4) == 0 {
		size += 1 << 20
	}
	w, err := n.Attachments.Put(ctx, copyName, id, key)
	if err != nil {
		return err
	}
	if _, err = w.Write(bytes.Repeat([]byte{byte(rng.Uint32())}, size)); err == nil {
		err = w.Close()
	}
	if err != nil {
		w.Abort()
		return err
	}
	_, err = n.Decide(ctx, DecideRequest{Copy: copyName, Insist: true, Edits: []Edit{{
		ID: id, Body: body(rng.IntN(100)), Path: doc.Path{Start: uint64(1 + rng.IntN(3)), IDs: []string{fmt.Sprintf("r%x", rng.Uint64())}},
		Atts: []EditAttachment{{Attachment: doc.Attachment{Name: "big", Key: key, Length: int64(size), StoredLength: int64(size)}}},
	}}})
	return err
}

// scatterPurge purges a few leaves, or all, of a document.
func (n *node) scatterPurge(ctx context.Context, rng *rand.Rand) error {
	id := fmt.Sprintf("doc%d", rng.IntN(200))
	if rng.IntN(4) == 0 {
		id = fmt.Sprintf("att%d", rng.IntN(20))
	}
	docs, err := n.OpenRevs(ctx, OpenRevsRequest{Copy: copyName, ID: id, All: true})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	item := PurgeItem{ID: id}
	all := rng.IntN(2) == 0
	for i := range docs {
		if docs[i].Doc != nil && (all || rng.IntN(2) == 0) {
			item.Revs = append(item.Revs, docs[i].Doc.Rev)
		}
	}
	_, err = n.Purge(ctx, copyName, []PurgeItem{item})
	return err
}

// TestClonePowerCut cuts the power while a copy is cloned, with edits of the source
// now and then, goes on from what the disk then holds, and compares when it gets to an
// end.
func TestClonePowerCut(t *testing.T) {
	iterations := 20
	if testing.Short() {
		iterations = 3
	}
	if text := os.Getenv(crashIterations); text != "" {
		var err error
		if iterations, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for range iterations {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%x", seed), func(t *testing.T) { cutClones(t, seed) }) {
			return
		}
	}
}

func cutClones(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	ctx := context.Background()
	disk := &crashable{MemFS: vfs.NewCrashableMem()}
	n := open(t, disk, Options{})
	n.create(CreateOptions{})
	n.createHalves(CreateOptions{})
	defer func() { n.stop() }()
	for range 1 + rng.IntN(5) {
		if err := n.scatter(ctx, rng, 1+rng.IntN(60)); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(3) == 0 {
			if err := n.compactNow(Limits{PurgedInfos: 1 + rng.IntN(5)}); err != nil {
				t.Fatal(err)
			}
		}
		after := cutClone(t, n, disk, rng)
		n.stop()
		disk = &crashable{MemFS: after}
		n = open(t, disk, Options{})
		for _, o := range halves {
			n.acquire(t, o.Target, func(s *storage.Store) {
				if err := s.Check(ctx, func(p string) { t.Errorf("after a cut: %s: %s", o.Target, p) }); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	n.cloneHalves(t, 1+rng.IntN(20000))
	n.compareHalves(t)
}

// cutClone clones until the power goes.
func cutClone(t *testing.T, n *node, disk *crashable, rng *rand.Rand) *vfs.MemFS {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	step, seed := 1+rng.IntN(50000), rng.Uint64()
	for _, o := range halves {
		o.stepBytes = step
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := n.Clones.Range(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	if rng.IntN(2) == 0 {
		wg.Go(func() {
			if err := n.scatter(ctx, rand.New(rand.NewPCG(seed, 1)), 1000); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	pass(time.Duration(rng.IntN(60)) * time.Millisecond)
	after := disk.cut(rng)
	cancel()
	wg.Wait()
	return after
}
