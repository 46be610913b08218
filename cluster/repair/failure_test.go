package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

var errSick = errors.New("the target is sick")

func TestErrorsAreRetried(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.node(0), w.node(1)
		w.wait(time.Minute)
		var calls atomic.Int64
		sick := func(replica.Call) error {
			calls.Add(1)
			return errSick
		}
		b.broken.Store(&sick)
		a.put("x", doc.Rev{}, `{}`)
		w.wait(time.Hour)
		if n := calls.Load(); n < 50 || n > 200 { // once a minute or a little more often
			t.Errorf("%d tries in an hour", n)
		}
		b.broken.Store(nil)
		w.wait(time.Minute)
		w.agree()
	})
}

// Nothing is lost or half done, whichever call fails, and however often.
func TestEveryCallMayFail(t *testing.T) {
	for at := 1; ; at++ {
		a, b := pair2(t)
		r1 := a.put("d", doc.Rev{}, `{"n":1}`, a.attach("d", "large", 1, content(100_000, 'a')))
		a.sync(b)
		a.put("d", r1, `{"n":2}`, a.attach("d", "large", 2, content(120_000, 'b')), a.attach("d", "small", 0, []byte("x")))
		x := a.put("x", doc.Rev{}, `{}`)
		a.purge(1, "x", x)
		y := b.put("y", doc.Rev{}, `{}`)
		b.purge(2, "y", y)
		f := &failing{Copies: b.copies(), at: at}
		_, err := a.pushTo(b, f).run(context.Background())
		if err == nil {
			if f.calls >= at {
				t.Errorf("call %d failed and nobody noticed", at)
			}
			break
		}
		a.sync(b)
		agree(t, a, b)
		if b.unused() != 0 {
			t.Errorf("call %d (%s): %d contents that nothing refers to are left", at, f.name, b.unused())
		}
		a.check()
		b.check()
	}
}

// unused counts what the verification of the store complains about: contents
// that nothing refers to.
func (n *node) unused() int {
	s, err := n.engine.Acquire(n.copy)
	if err != nil {
		n.t.Fatal(err)
	}
	defer n.engine.Release(s)
	unused := 0
	if err := s.Check(context.Background(), func(string) { unused++ }); err != nil {
		n.t.Fatal(err)
	}
	return unused
}

// failing fails one call.
type failing struct {
	Copies
	at, calls int
	name      string
}

func (f *failing) count(name string) error {
	f.calls++
	if f.calls == f.at {
		f.name = name
		return errSick
	}
	return nil
}

func (f *failing) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	if err := f.count("position"); err != nil {
		return uuid, 0, err
	}
	return f.Copies.Position(ctx, name)
}

func (f *failing) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	if err := f.count("missing"); err != nil {
		return nil, err
	}
	return f.Copies.Missing(ctx, name, ids)
}

func (f *failing) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	if err := f.count("read"); err != nil {
		return nil, err
	}
	return f.Copies.ReadAttachment(ctx, r)
}

func (f *failing) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	if err := f.count("update"); err != nil {
		return nil, err
	}
	res, err := f.Copies.Follow(ctx, req)
	if err == nil {
		err = f.count("answer to update")
	}
	return res, err
}

func (f *failing) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	if err := f.count("purge"); err != nil {
		return nil, err
	}
	return f.Copies.Purge(ctx, name, items)
}

func (f *failing) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	if err := f.count("purges"); err != nil {
		return nil, err
	}
	return f.Copies.Purges(ctx, name, since)
}

func (f *failing) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	if err := f.count("local"); err != nil {
		return nil, err
	}
	return f.Copies.LocalGet(ctx, name, id)
}

func (f *failing) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	if err := f.count("put"); err != nil {
		return nil, err
	}
	s, err := f.Copies.PutAttachment(ctx, name, id, key)
	return &failingSink{s, f}, err
}

type failingSink struct {
	shard.AttachmentSink
	f *failing
}

func (s *failingSink) Write(p []byte) (int, error) {
	if err := s.f.count("write"); err != nil {
		return 0, err
	}
	return s.AttachmentSink.Write(p)
}

func (s *failingSink) Close() error {
	if err := s.f.count("close"); err != nil {
		return err
	}
	return s.AttachmentSink.Close()
}

// A purge that happens at the target while a push is under way wins.
func TestPurgeDuringPush(t *testing.T) {
	a, b := pair2(t)
	r := a.put("x", doc.Rev{}, `{}`)
	a.sync(b)
	b.lose(shard.CreateOptions{})
	f := &meddling{Copies: b.copies(), meddle: func() { b.purge(1, "x", r) }}
	_, err := a.pushTo(b, f).run(context.Background())
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a push that did not see the purge: %v", err)
	}
	a.sync(b)
	b.sync(a)
	agree(t, a, b)
	if got := b.showDoc("x"); got != "x" {
		t.Errorf("the purged document is %s", got)
	}
}

// meddling does something before the first edit of a document, or after its
// contents have been looked for.
type meddling struct {
	Copies
	meddle, uploaded func()
}

func (m *meddling) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	out, err := m.Copies.Missing(ctx, name, ids)
	if m.meddle != nil {
		m.meddle()
	}
	return out, err
}

func (m *meddling) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	if m.uploaded != nil {
		m.uploaded()
	}
	return m.Copies.Follow(ctx, req)
}

// The power of the target, and then of the source, fails in the middle of
// pushes: what was counted as pushed is there.
func TestPowerFails(t *testing.T) {
	a, b := newNode(t, "a@x"), newNode(t, "b@x")
	for _, n := range []*node{a, b} {
		n.stop()
		n.fs = vfs.NewCrashableMem()
		n.open()
		n.create(shard.CreateOptions{})
	}
	for round := range 6 {
		for i := range 40 {
			a.put(fmt.Sprintf("a%d-%d", round, i), doc.Rev{}, `{}`)
			b.put(fmt.Sprintf("b%d-%d", round, i), doc.Rev{}, `{}`)
		}
		p := a.pushTo(b, b.copies())
		p.batch, p.turn = 8, 2+round%3
		if _, err := p.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			b.crash()
		} else {
			a.crash()
		}
		b.sync(a)
	}
	a.sync(b)
	b.sync(a)
	agree(t, a, b)
	if a.info().Live != 480 {
		t.Errorf("%d documents", a.info().Live)
	}
	a.stop()
	b.stop()
}

// crash loses everything that was not made durable.
func (n *node) crash() {
	n.t.Helper()
	left := n.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	n.stop()
	n.fs = left
	n.open()
}

// However much there is to push, and however large it is, a push keeps little
// of it in memory.
func TestPushIsBoundedInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 44 MB")
	}
	a, b := pair2(t)
	big := `{"x":"` + string(content(200_000, 'a')) + `"}`
	for i := range 100 {
		a.put(fmt.Sprintf("big%d", i), doc.Rev{}, big)
	}
	large := content(12_000_000, 'b')
	a.put("att", doc.Rev{}, `{}`, a.attach("att", "1", 1, large), a.attach("att", "2", 2, large))
	sink := &swallowing{Copies: b.copies()}
	sink.base = heapBytes()
	if _, err := a.pushTo(b, sink).run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if sink.edits < 100 || sink.bytes < 24_000_000 {
		t.Errorf("%d edits and %d bytes arrived", sink.edits, sink.bytes)
	}
	// The cache of blocks, 8 MB here, is part of it.
	if grown := int64(sink.most) - int64(sink.base); grown > 16<<20 {
		t.Errorf("the push took %d MB of memory", grown>>20)
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// swallowing takes everything and keeps nothing.
type swallowing struct {
	Copies
	edits      int
	bytes      int64
	base, most uint64
}

func (s *swallowing) Follow(_ context.Context, req shard.FollowRequest) ([]error, error) {
	if s.edits += len(req.Edits); s.edits/16 != (s.edits-len(req.Edits))/16 {
		s.most = max(s.most, heapBytes())
	}
	return make([]error, len(req.Edits)), nil
}

func (s *swallowing) PutAttachment(context.Context, string, string, [16]byte) (shard.AttachmentSink, error) {
	return &drain{s}, nil
}

type drain struct{ s *swallowing }

func (d *drain) Write(p []byte) (int, error) {
	before := d.s.bytes >> 22
	d.s.bytes += int64(len(p))
	if d.s.bytes>>22 != before {
		d.s.most = max(d.s.most, heapBytes())
	}
	return len(p), nil
}

func (d *drain) Close() error { return nil }
func (d *drain) Abort()       {}

var _ io.Writer = (*drain)(nil)
