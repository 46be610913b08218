package storage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/keyspace"
	"divan/storage/records"
	"divan/storage/storagetest"
)

// crashLoad writes batches whose content follows from their number, so that the
// state after any prefix is known.
type crashLoad struct {
	t     *testing.T
	s     *Store
	acked atomic.Uint64 // numbered batches known to be durable
	last  atomic.Uint64 // number of the last batch applied
	stop  chan struct{}
	turns chan struct{} // batches that may still be written
	loads chan struct{} // uploads that may still be made
	acks  chan struct{} // one for each acknowledged batch
	wg    sync.WaitGroup
	edits chan func(b *Batch, w *edits) // from the uploader
	calls chan func(w *edits)           // from the compaction
}

const crashDocs = 40

// writer applies a batch while the one before is still on its way to the disk.
func (l *crashLoad) writer() {
	w := newEdits()
	commits := make(chan *Commit, 4)
	defer close(commits)
	l.wg.Go(func() {
		for c := range commits {
			if err := c.Wait(); err != nil {
				l.t.Errorf("Wait: %v", err)
			}
			l.acked.Add(1)
			l.acks <- struct{}{}
		}
	})
	for n := uint64(1); ; n++ {
		for turn := false; !turn; {
			select {
			case <-l.stop:
				return
			case call := <-l.calls:
				call(w)
			case <-l.turns:
				turn = true
			}
		}
		b := l.s.NewBatch()
		l.numbered(b, w, n)
		select {
		case fn := <-l.edits:
			fn(b, w)
		default:
		}
		c, err := b.Apply()
		if err != nil {
			l.t.Errorf("Apply: %v", err)
			return
		}
		l.last.Store(n)
		commits <- c
	}
}

// numbered is the content of batch n: two documents far apart, now and then a
// purge, a deletion, a local document.
func (l *crashLoad) numbered(b *Batch, w *edits, n uint64) {
	body := fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, n, bytes.Repeat([]byte("x"), int(n%5)*500))
	for _, kind := range []string{"a", "z"} {
		id := fmt.Sprintf("%s%02d", kind, n%crashDocs)
		if rec := w.recs[id]; rec != nil && n%7 == 0 {
			w.purge(b, id)
			b.PutPurge(Purge{Seq: w.seq, ID: id, Revs: []doc.Rev{rec.Winner}})
			continue
		}
		w.put(b, edit{id: id, body: body, deleted: n%11 == 0})
	}
	b.PutLocal("_local/n", fmt.Append(nil, n))
}

// uploader streams attachments and lets documents refer to most of them.
func (l *crashLoad) uploader() {
	data := bytes.Repeat([]byte("0123456789abcdef"), 5<<10) // 80 KB
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		case <-l.loads:
		}
		id := fmt.Sprintf("att%02d", n%8)
		key := keyspace.ContentKey{byte(n), byte(n >> 8)}
		w, err := l.s.NewAttachment(id, key)
		if err != nil {
			l.t.Errorf("NewAttachment: %v", err)
			return
		}
		if _, err = w.Write(data); err == nil {
			err = w.Close()
		}
		if err != nil {
			l.t.Errorf("upload: %v", err)
			return
		}
		if n%3 == 0 {
			continue // the client went away
		}
		edit := edit{id: id, atts: []doc.Attachment{{Name: "a", Key: key, StoredLength: int64(len(data))}}}
		select {
		case l.edits <- func(b *Batch, m *edits) { m.put(b, edit) }:
		case <-l.stop:
			return
		}
	}
}

// compactor compacts all the time, with the writer as the one that writes.
func (l *crashLoad) compactor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.wg.Go(func() {
		<-l.stop
		cancel()
	})
	for ctx.Err() == nil {
		err := l.s.Compact(ctx, CompactOptions{PurgesToTrim: allButNewest(l.s, 3), Write: l.write})
		if err != nil && ctx.Err() == nil {
			l.t.Errorf("Compact: %v", err)
			return
		}
	}
}

func (l *crashLoad) write(ctx context.Context, fn func(b *Batch) error) error {
	done := make(chan error, 1)
	call := func(w *edits) {
		b := l.s.NewBatch()
		err := fn(b)
		var c *Commit
		if err == nil {
			c, err = b.Apply()
		}
		if err == nil {
			err = c.Wait()
		}
		w.load(l.t, l.s)
		done <- err
	}
	select {
	case l.calls <- call:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestCrash cuts power again and again under load: what was acknowledged is
// there, no batch is there by half, and nothing that Check knows is broken.
func TestCrash(t *testing.T) {
	var total crashed
	n := uint64(rounds(t, 20))
	// Whether a batch is under way when power is cut is the scheduler's choice: a few short rounds may all miss it.
	for episode := uint64(0); episode < n || total.lost == 0 && episode < 5*n; episode++ {
		total.add(crashEpisode(t, episode))
	}
	if total.lost == 0 {
		t.Error("no crash lost a batch: the test does not cut power early enough")
	}
	if total.swept == 0 {
		t.Error("no crash left an upload behind: the test does not see the sweeper")
	}
	t.Logf("%+v", total)
}

// crashed counts what crashes have met.
type crashed struct {
	acked       uint64 // batches acknowledged
	lost, swept int    // crashes that lost a batch, uploads swept
}

func (c *crashed) add(o crashed) {
	c.acked += o.acked
	c.lost += o.lost
	c.swept += o.swept
}

// crashEpisode loads one store and crashes it some times.
func crashEpisode(t *testing.T, seed uint64) (sum crashed) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	fs := storagetest.NewCrashFS()
	e, stop := startEngine(t, Options{FS: fs})
	defer stop()
	must(t, e.Create(testStore, CreateOptions{Small: seed/2%2 == 1, Partitioned: seed%2 == 0}))
	s, err := e.Acquire(testStore)
	must(t, err)
	defer e.Release(s)
	l := &crashLoad{
		t: t, s: s, stop: make(chan struct{}), edits: make(chan func(*Batch, *edits)), calls: make(chan func(*edits)),
		turns: make(chan struct{}, 1000), loads: make(chan struct{}, 1000), acks: make(chan struct{}, 1000),
	}
	l.wg.Go(l.writer)
	l.wg.Go(l.uploader)
	l.wg.Go(l.compactor)
	for range 8 {
		for i := range 60 {
			l.turns <- struct{}{}
			if i%5 == 0 {
				l.loads <- struct{}{}
			}
		}
		for range rng.IntN(60) {
			<-l.acks
		}
		acked := l.acked.Load()
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng})
		last := l.last.Load()
		n, swept := l.verify(clone, acked)
		if n < last {
			sum.lost++
		}
		sum.swept += swept
	}
	close(l.stop)
	l.wg.Wait()
	sum.acked = l.acked.Load()
	return sum
}

// rounds is how many times a test repeats itself, fewer with -short, DIVAN_CRASHES when that is set.
func rounds(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("DIVAN_CRASHES"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	if testing.Short() {
		return n / 10
	}
	return n
}

// verify opens what a crash left and returns the number of batches in it and
// of uploads that the sweeper had to remove.
func (l *crashLoad) verify(fs vfs.FS, acked uint64) (batches uint64, swept int) {
	t := l.t
	e, err := NewEngine(Options{Dir: "data", FS: fs})
	if err != nil {
		t.Fatalf("NewEngine: %v", err)
	}
	s, err := e.Acquire(testStore)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	defer func() {
		e.Release(s)
		must(t, e.Close())
	}()
	checkStore(t, s)
	text, ok, err := s.Reader().Local("_local/n")
	must(t, err)
	if ok {
		batches, err = strconv.ParseUint(string(text), 10, 64)
		must(t, err)
	}
	if batches < acked {
		t.Fatalf("%d batches survived, %d were acknowledged", batches, acked)
	}
	l.verifyPrefix(s, batches)
	// Every trace of an upload is gone, or referred to.
	must(t, records.Each(s.inst.DB(), keyspace.Start(keyspace.Uploads), keyspace.End(keyspace.Uploads), func(k, _ []byte) error {
		return fmt.Errorf("upload %x was not swept", k)
	}))
	must(t, records.Each(s.inst.DB(), keyspace.Start(keyspace.Attachments), keyspace.End(keyspace.Attachments), func(k, _ []byte) error {
		_, key, chunk, _ := keyspace.CutChunk(k)
		if chunk == 0 && (int(key[0])+int(key[1])<<8)%3 == 0 {
			t.Errorf("content %x, which nobody referred to, is there", key)
		}
		return nil
	}))
	return batches, s.swept
}

// verifyPrefix compares the numbered documents with those of the first batches.
func (l *crashLoad) verifyPrefix(s *Store, batches uint64) {
	want := map[string]uint64{} // id → the batch it is from; 0: purged
	for n := uint64(1); n <= batches; n++ {
		for _, kind := range []string{"a", "z"} {
			id := fmt.Sprintf("%s%02d", kind, n%crashDocs)
			if want[id] != 0 && n%7 == 0 {
				want[id] = 0
				continue
			}
			want[id] = n
		}
	}
	for id, n := range want {
		rec, ok, err := s.Reader().Record(id)
		if err != nil || ok != (n != 0) {
			l.t.Fatalf("%s after %d batches: %v, %v, want batch %d", id, batches, ok, err, n)
		}
		if !ok {
			continue
		}
		v, ok, err := s.Reader().Revision(id, rec.Winner)
		if rec.Inline != nil {
			v, err = doc.DecodeRevision(rec.Inline)
			ok = true
		}
		if prefix := fmt.Appendf(nil, `{"n":%d,`, n); err != nil || !ok || !bytes.HasPrefix(v.Body, prefix) {
			l.t.Fatalf("%s after %d batches has body %.20q, want that of batch %d; %v", id, batches, v.Body, n, err)
		}
	}
}

// TestCrashCreateDrop: an acknowledged Create or Drop survives a crash, and a
// half-made store is none.
func TestCrashCreateDrop(t *testing.T) {
	fs := storagetest.NewCrashFS()
	e, _ := startEngine(t, Options{FS: fs})
	want := map[string]bool{}
	for i := range rounds(t, 60) {
		name := fmt.Sprintf("shards/00000000-7fffffff/team%d/db%d.1", i/2%3, i/2)
		if i%2 == 0 {
			must(t, e.Create(name, CreateOptions{CopyID: 1, Small: true}))
			want[name] = true
		} else if i%4 == 1 {
			must(t, e.Drop(name))
			delete(want, name)
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: i % 2 * 50, RNG: rand.New(rand.NewPCG(uint64(i), 2))})
		e2, err := NewEngine(Options{Dir: "data", FS: clone})
		must(t, err)
		names, err := e2.Catalog().Names()
		must(t, err)
		if len(names) != len(want) {
			t.Fatalf("after %d steps %d stores survived, want %d", i, len(names), len(want))
		}
		for _, n := range names {
			if !want[n] {
				t.Fatalf("store %s is there", n)
			}
			s, err := e2.Acquire(n)
			must(t, err)
			e2.Release(s)
		}
		must(t, e2.Close())
	}
}

// TestCrashFirstWrite: the first batch opens a store's files; a crash in there
// leaves an empty store or a whole one.
func TestCrashFirstWrite(t *testing.T) {
	for seed := range uint64(rounds(t, 100)) {
		fs := storagetest.NewCrashFS()
		e, stop := startEngine(t, Options{FS: fs})
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		done := make(chan struct{})
		var acked atomic.Bool
		go func() {
			defer close(done)
			s, err := e.Acquire(testStore)
			if err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			defer e.Release(s)
			b := s.NewBatch()
			newEdits().put(b, edit{id: "a"})
			commit(t, b)
			acked.Store(true)
		}()
		for more := true; more; {
			select {
			case <-done:
				more = false
			default:
			}
			must(t, firstWriteSurvived(fs, seed, acked.Load()))
		}
		stop()
	}
}

func firstWriteSurvived(fs storagetest.CrashFS, seed uint64, acked bool) error {
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 3))})
	e, err := NewEngine(Options{Dir: "data", FS: clone})
	if err != nil {
		return err
	}
	s, err := e.Acquire(testStore)
	if err != nil {
		return fmt.Errorf("after a crash in the first write: %w", err)
	}
	if n := s.Counters().Live; n > 1 || acked && n != 1 {
		return fmt.Errorf("%d documents", n)
	}
	b := s.NewBatch()
	b.PutLocal("_local/x", []byte("{}"))
	c, err := b.Apply()
	if err == nil {
		err = c.Wait()
	}
	if err == nil {
		err = s.Check(context.Background(), func(p string) { err = fault.New(fault.Corruption, p) })
	}
	e.Release(s)
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	return err
}
