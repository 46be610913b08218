package shard

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/fault"
)

// crashIterations is the variable that says how many power cuts to try.
const crashIterations = "DIVAN_CRASHES"

// TestPowerCut cuts the power at random moments under concurrent edits,
// attachments, purges, compaction and reads, starts again from what the disk
// then holds, and looks whether everything that was answered, or shown to any
// reader, is there, and every invariant of the store holds.
func TestPowerCut(t *testing.T) {
	iterations := 20
	if text := os.Getenv(crashIterations); text != "" {
		var err error
		if iterations, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for range iterations {
		seed := rand.Uint64()
		ok := t.Run(fmt.Sprintf("seed=%x", seed), func(t *testing.T) { cutPower(t, seed) })
		if !ok {
			return
		}
	}
}

// history records what clients were told. Every entry in it was answered before
// the power went.
type history struct {
	mu      sync.Mutex
	edits   []told         // accepted edits of documents that are never purged
	purged  []told         // purged leaves
	content map[string]big // by revision: attachments that came in as streams
	locals  map[string]int // local document → the last value that was answered
	shown   []told         // rows of feeds, with their sequences
	seq     uint64         // highest sequence shown
	answers int
	enough  int           // answers until the cut
	cut     chan struct{} // closed when there are enough
}

type told struct {
	id  string
	rev doc.Rev
	seq uint64
}

type big struct {
	id   string
	key  [16]byte
	fill byte
	size int
}

// copy is called with mu held.
func (h *history) copy() *history {
	return &history{
		edits: slices.Clone(h.edits), purged: slices.Clone(h.purged), content: maps.Clone(h.content),
		locals: maps.Clone(h.locals), shown: slices.Clone(h.shown), seq: h.seq,
	}
}

// note runs fn as part of an answer.
func (h *history) note(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn()
	if h.answers++; h.answers == h.enough {
		close(h.cut)
	}
}

func cutPower(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := &crashable{MemFS: vfs.NewCrashableMem()}
	var slow slowSync // so that there is something between visible and durable
	n := open(t, slow.fs(disk), Options{})
	defer n.stop()
	n.create(CreateOptions{})
	slow.delay.Store(int64(rng.IntN(3)) * int64(time.Millisecond))
	h := &history{
		content: map[string]big{}, locals: map[string]int{}, enough: 1 + rng.IntN(250), cut: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	clients := []func(context.Context, *node, *history, *rand.Rand, int) error{
		editOwn, editOwn, editShared, editShared, bulk, attach, attach, purgeOwn, purgeOwn, putLocal, follow, read, readOld, readOld, compactAlways,
	}
	for i, client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+1))
		wg.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				if err := client(ctx, n, h, rng, i*1000000+round); err != nil && ctx.Err() == nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	<-h.cut
	h.mu.Lock()
	after := disk.cut(rng)
	stop()
	survived := h.copy()
	h.mu.Unlock()
	wg.Wait()
	n.stop()
	again := open(t, after, Options{})
	defer again.stop()
	survived.verify(t, again)
	again.check()
	again.must(again.edit("after", "", "{}"))
	if err := again.compactNow(Limits{}); err != nil {
		t.Fatal(err)
	}
	survived.verify(t, again)
	again.check()
}

// crashable keeps links and cuts apart: MemFS.Link takes the lock that
// CrashClone waits for twice, so that the two of them can block each other for
// ever (pebble v2.1.7).
type crashable struct {
	*vfs.MemFS
	mu sync.Mutex
}

// Link implements vfs.FS.
func (c *crashable) Link(oldname, newname string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.MemFS.Link(oldname, newname)
}

// cut returns what a power cut now leaves on the disk.
func (c *crashable) cut(rng *rand.Rand) *vfs.MemFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(5) * 25, RNG: rng})
}

// write does one request and notes the accepted edits.
func write(ctx context.Context, n *node, h *history, newEdits bool, edits ...Edit) ([]EditResult, error) {
	res, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: newEdits, Edits: edits, Insist: true})
	if err != nil {
		return nil, err
	}
	h.note(func() {
		for i, r := range res {
			if r.Err == nil {
				h.edits = append(h.edits, told{id: edits[i].ID, rev: r.Rev})
			}
		}
	})
	return res, nil
}

// next is an edit on top of what there is.
func next(ctx context.Context, n *node, rng *rand.Rand, id string, i int) (Edit, error) {
	e := Edit{ID: id, Body: []byte(fmt.Sprintf(`{"i":%d}`, i)), Deleted: rng.IntN(10) == 0}
	if rng.IntN(5) == 0 {
		e.Body = body(rng.IntN(5000))
	}
	d, err := n.Open(ctx, OpenRequest{Copy: copyName, ID: id})
	switch {
	case err == nil:
		e.Parent = d.Rev
	case fault.Is(err, fault.NotFound):
		e.Deleted = false
	default:
		return e, err
	}
	return e, nil
}

func editOwn(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	e, err := next(ctx, n, rng, fmt.Sprintf("own%d-%d", i/1000000, rng.IntN(5)), i)
	if err == nil {
		_, err = write(ctx, n, h, true, e)
	}
	return err
}

func editShared(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	e, err := next(ctx, n, rng, fmt.Sprint("shared", rng.IntN(3)), i)
	if err == nil {
		_, err = write(ctx, n, h, true, e)
	}
	return err
}

func bulk(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	edits := make([]Edit, 1+rng.IntN(40))
	for k := range edits {
		edits[k] = Edit{
			ID: fmt.Sprintf("bulk%d", rng.IntN(100)), Body: body(rng.IntN(300)),
			Path: doc.Path{Start: uint64(1 + rng.IntN(3)), IDs: []string{fmt.Sprintf("r%d-%d", i, k)}},
		}
	}
	_, err := write(ctx, n, h, false, edits...)
	return err
}

// attach sends content as a stream, then the edit that refers to it; sometimes
// the edit never comes.
func attach(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	id := fmt.Sprintf("att%d-%d", i/1000000, rng.IntN(3))
	b := big{id: id, fill: byte(i), size: 64<<10 + rng.IntN(300<<10)}
	binary.BigEndian.PutUint64(b.key[:], uint64(i)+1)
	s, err := n.Attachments.Put(ctx, copyName, id, b.key)
	if err != nil {
		return err
	}
	for left := b.size; left > 0; left -= 32 << 10 {
		if _, err := s.Write(bytes.Repeat([]byte{b.fill}, min(left, 32<<10))); err != nil {
			s.Abort()
			return err
		}
	}
	if rng.IntN(4) == 0 {
		s.Abort()
		return nil
	}
	if err := s.Close(); err != nil {
		s.Abort()
		return err
	}
	e, err := next(ctx, n, rng, id, i)
	if err != nil {
		return err
	}
	e.Deleted = false
	e.Atts = []EditAttachment{{Attachment: doc.Attachment{Name: "big", Key: b.key, Length: int64(b.size), StoredLength: int64(b.size)}}}
	if rng.IntN(4) == 0 {
		return n.Attachments.Drop(ctx, copyName, id, [][16]byte{b.key})
	}
	small := []byte(fmt.Sprint("small", i))
	e.Atts = append(e.Atts, EditAttachment{
		Attachment: doc.Attachment{Name: "small", Length: int64(len(small)), StoredLength: int64(len(small)), Digest: digest(string(small))},
		Data:       small,
	})
	res, err := write(ctx, n, h, true, e)
	if err == nil && res[0].Err == nil {
		h.note(func() { h.content[id+" "+res[0].Rev.String()] = b })
	}
	return err
}

// purgeOwn makes documents and removes them for good.
func purgeOwn(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	id := fmt.Sprintf("purge%d-%d", i/1000000, rng.IntN(3))
	var edits []Edit
	for k := range 1 + rng.IntN(3) {
		edits = append(edits, Edit{ID: id, Body: body(rng.IntN(3000)), Path: doc.Path{Start: 2, IDs: []string{fmt.Sprintf("x%d-%d", i, k), "root"}}})
	}
	res, err := n.Decide(ctx, DecideRequest{Copy: copyName, Edits: edits, Insist: true})
	if err != nil {
		return err
	}
	got, err := n.Purge(ctx, copyName, []PurgeItem{{ID: id, Revs: []doc.Rev{res[0].Rev}}})
	if err != nil {
		return err
	}
	if len(got[0].Purged) != 1 {
		return fmt.Errorf("purged %v of %s %s", got, id, res[0].Rev)
	}
	h.note(func() { h.purged = append(h.purged, told{id: id, rev: res[0].Rev}) })
	return nil
}

func putLocal(ctx context.Context, n *node, h *history, rng *rand.Rand, i int) error {
	id := fmt.Sprintf("_local/%d", rng.IntN(3))
	if _, err := n.LocalDocs.Put(ctx, copyName, id, doc.Rev{}, strconv.AppendInt(nil, int64(i), 10)); err != nil {
		return err
	}
	h.note(func() { h.locals[id] = i })
	return nil
}

// follow reads the feed from where it was.
func follow(ctx context.Context, n *node, h *history, rng *rand.Rand, _ int) error {
	w, err := n.Watch(copyName)
	if err != nil {
		return err
	}
	defer w.Close()
	for since := uint64(0); ; {
		s, err := n.Changes(ctx, ChangesRequest{Copy: copyName, Since: since})
		if err != nil {
			return err
		}
		var b ChangeBatch
		for more := true; more && err == nil; {
			if more, err = s.Next(&b); err != nil {
				break // the rows of a batch that failed are not complete
			}
			h.note(func() {
				for _, c := range b.Rows {
					h.shown = append(h.shown, told{id: strings.Clone(c.ID), rev: c.Leaves[0], seq: c.Seq})
				}
				h.seq = max(h.seq, b.Upto)
			})
			since = b.Upto
		}
		s.Close()
		if err != nil {
			return err
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			return nil
		}
	}
}

func read(ctx context.Context, n *node, h *history, rng *rand.Rand, _ int) error {
	id := fmt.Sprint("shared", rng.IntN(3))
	d, err := n.Open(ctx, OpenRequest{Copy: copyName, ID: id, LocalSeq: true})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := n.Info(ctx, copyName)
	if err != nil {
		return err
	}
	h.note(func() {
		h.shown = append(h.shown, told{id: id, rev: d.Rev, seq: d.LocalSeq})
		h.seq = max(h.seq, info.Seq)
	})
	return nil
}

// readOld reads a revision that was a leaf once, while compaction drops such.
func readOld(ctx context.Context, n *node, h *history, rng *rand.Rand, _ int) error {
	h.mu.Lock()
	var e told
	if len(h.edits) > 0 {
		e = h.edits[rng.IntN(len(h.edits))]
	}
	h.mu.Unlock()
	if e.id == "" {
		return nil
	}
	_, err := n.Open(ctx, OpenRequest{Copy: copyName, ID: e.id, Rev: e.rev})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

func compactAlways(ctx context.Context, n *node, h *history, _ *rand.Rand, _ int) error {
	if err := n.Compactions.Start(ctx, copyName, Limits{PurgedInfos: 3}, "db"); err != nil {
		return err
	}
	n.Compactions.mu.Lock()
	c := n.Compactions.running[copyName]
	n.Compactions.mu.Unlock()
	if c != nil {
		<-c.ended
	}
	return nil
}

// verify looks for everything that was told.
func (h *history) verify(t *testing.T, n *node) {
	t.Helper()
	for _, e := range h.edits {
		if !n.knows(e.id, e.rev) {
			t.Errorf("edit %s of %s was answered and is lost", e.rev, e.id)
		}
	}
	for _, p := range h.purged {
		if n.knows(p.id, p.rev) {
			t.Errorf("%s of %s was purged and is back", p.rev, p.id)
		}
	}
	for at, b := range h.content {
		h.verifyContent(t, n, at, b)
	}
	for id, i := range h.locals {
		d, err := n.LocalDocs.Get(context.Background(), copyName, id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if got, err := strconv.Atoi(string(d.Body)); err != nil || got < i {
			t.Errorf("%s is %d, %d was answered", id, got, i)
		}
	}
	if got := n.info().Seq; got < h.seq {
		t.Errorf("sequence %d was shown, %d is there", h.seq, got)
	}
	for _, s := range h.shown {
		if strings.HasPrefix(s.id, "purge") {
			continue
		}
		d, err := n.get(OpenRequest{ID: s.id, AllowDeleted: true, LocalSeq: true})
		if err != nil || d.LocalSeq < s.seq || !n.knows(s.id, s.rev) || d.LocalSeq == s.seq && d.Rev != s.rev {
			t.Errorf("%s %s was shown at %d, now: %+v %v", s.id, s.rev, s.seq, d, err)
		}
	}
}

// verifyContent reads the attachment of a revision that is still the winner.
func (h *history) verifyContent(t *testing.T, n *node, at string, b big) {
	t.Helper()
	d, err := n.get(OpenRequest{ID: b.id})
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	if b.id+" "+d.Rev.String() != at {
		return
	}
	if len(d.Atts) != 2 || d.Atts[0].Key != b.key || n.read(b.id, b.key) != string(bytes.Repeat([]byte{b.fill}, b.size)) {
		t.Errorf("content of %s is not what was sent: %+v", at, d.Atts)
	}
	if small := n.read(b.id, d.Atts[1].Key); !strings.HasPrefix(small, "small") || digest(small) != d.Atts[1].Digest {
		t.Errorf("small content of %s is %q", at, small)
	}
}

// knows reports whether a revision is in the tree of a document.
func (n *node) knows(id string, r doc.Rev) bool {
	n.t.Helper()
	got, err := n.Missing(context.Background(), copyName, []IDRevs{{ID: id, Revs: []doc.Rev{r}}})
	if err != nil {
		n.t.Fatal(err)
	}
	return len(got[0].Missing) == 0
}
