package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/records"
	"divan/storage/rewritten"
	"divan/storage/small"
)

// Index is an open store for something that is derived from a shard copy: keys
// and values that mean nothing here. It belongs to one copy, by its UUID, and has
// a name among the indexes of that copy, its signature.
//
// Invariants:
//
//	X1  there is no log: a crash leaves a prefix of the committed batches, and
//	    everything before the last Flush. What an index reflects is in the batch
//	    with its keys, so that it goes on from there.
//	X2  an index that cannot be opened, or belongs to another copy, is set aside
//	    and begins empty.
//	X3  an index goes with its copy.
//
// Reads are safe for concurrent use; batches belong to one goroutine at a time.
type Index struct {
	handle
	discarded bool   // its files are gone; guarded by engine.mu
	opening   uint64 // see Opening

	// version is that of the content, changed by each commit; committing are the
	// commits that run. See IndexSnapshot.Version.
	version    atomic.Uint64
	committing atomic.Int32
	large      atomic.Bool // a batch that the engine may hold still; see Settle
	rewritten  *rewritten.Keys
}

// indexPrefix begins the name of the file that makes a directory an index:
// INDEX-1-<UUID of the copy>. The number is the version of what programs put into
// indexes: raising it has every index built anew when it is next opened.
const indexPrefix = indexMarker + "1-"

// indexMarker begins it in every version.
const indexMarker = "INDEX-"

// indexDir is where the indexes of a copy are.
func indexDir(store string) string {
	return indexesDir + "/" + strings.TrimPrefix(store, shardsDir+"/")
}

// AcquireIndex opens an index of a copy, empty when there is none, and pins it
// until ReleaseIndex. The copy must stay pinned until then. An index that was
// dropped while it was in use gives fault.Unavailable until its last pin is gone.
func (e *Engine) AcquireIndex(s *Store, signature string) (*Index, error) {
	name := indexDir(s.name) + "/" + signature
	if !paths.Valid(name) || strings.Contains(signature, "/") {
		return nil, fmt.Errorf("index name %q is no path below the data directory", name)
	}
	m, err := e.acquire(name, func(name string) (member, error) { return e.openIndex(name, s.id.UUID) })
	switch {
	case fault.Is(err, fault.NoCopy):
		return nil, fault.New(fault.Unavailable, "The index is being removed.")
	case err != nil:
		return nil, err
	}
	return m.(*Index), nil
}

// ReleaseIndex takes back one pin of AcquireIndex.
func (e *Engine) ReleaseIndex(x *Index) { e.release(&x.handle) }

// openIndex opens what is there, or begins anew when that cannot be.
func (e *Engine) openIndex(name string, copyUUID [16]byte) (member, error) {
	path, identity := e.path(name), indexPrefix+hex.EncodeToString(copyUUID[:])
	files, err := e.o.FS.List(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, instance.DiskError("list index", err)
	case slices.Contains(files, identity) && instance.IsMade(files):
		x, err := e.openInstance(name)
		if !fault.Is(err, fault.Corruption) && !errors.Is(err, os.ErrNotExist) {
			return x, err
		}
		e.log.Warn("index is damaged and begins anew", zap.String("store", name), zap.Error(err))
		fallthrough
	default:
		if slices.ContainsFunc(files, otherVersion) {
			e.log.Info("index is of another version of the program and begins anew", zap.String("store", name))
		}
		if err := e.stage(name); err != nil {
			return nil, err
		}
	}
	if e.space.Err() != nil {
		return nil, fault.Wrap(fault.InsufficientStorage, "No space left on the disk.", errNotMade)
	}
	if err := e.makeIndex(path, identity); err != nil {
		return nil, instance.DiskError("make index", err)
	}
	return e.openInstance(name)
}

// errNotMade says that there is no such index, and no room to make one: it would be opened
// for reading, and there is nothing to read.
var errNotMade = errors.New("there is no room to make the index")

// otherVersion reports whether a file makes its directory an index of another
// version.
func otherVersion(file string) bool {
	return strings.HasPrefix(file, indexMarker) && !strings.HasPrefix(file, indexPrefix)
}

// makeIndex makes the directory and all above it durable; Pebble does the same
// for what is in it. One above it may have gone with an earlier copy, so that
// what dirs remembers does not count.
func (e *Engine) makeIndex(path, identity string) error {
	defer e.dirs.Hold()()
	if err := e.o.FS.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for _, file := range [...]string{identity, formatMarker + instance.PebbleFormat.String()} {
		if err := e.touch(e.o.FS.PathJoin(path, file)); err != nil {
			return err
		}
	}
	for dir := path; dir != e.path(); {
		dir = e.o.FS.PathDir(dir)
		if err := instance.SyncDir(e.o.FS, dir); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) openInstance(name string) (member, error) {
	x := &Index{handle: e.newHandle(name, e.readsOnly(name)), rewritten: rewritten.New()}
	kind := instance.Kind{Merger: format.IndexMerger(e.o.JoinIndex), Derived: true, TableEnd: func(start []byte) []byte {
		if len(start) == 0 || start[0] == 0xff {
			return nil
		}
		return []byte{start[0] + 1}
	}}
	if err := x.inst.Open(kind, func(*pebble.DB) error { return nil }); err != nil {
		return nil, errors.Join(err, x.inst.Close())
	}
	x.opening = e.versions.Add(1)
	x.version.Store(x.opening)
	e.countOpen(&x.handle, 0)
	return x, nil
}

// Opening names this opening of the index among all of the process: what is known of
// one need not hold for the next.
func (x *Index) Opening() uint64 { return x.opening }

// close makes what was committed durable first. One whose files turned out to be
// damaged begins anew when it is opened again.
func (x *Index) close(dropped bool) error {
	var err error
	if !dropped && x.Err() == nil && !x.inst.ReadOnly() {
		err = x.Flush()
	}
	err = errors.Join(err, x.inst.Close())
	if !dropped && x.inst.Damaged() {
		err = errors.Join(err, x.engine.stage(x.name))
	}
	return err
}

func (x *Index) remove() error {
	x.engine.mu.Lock()
	discarded := x.discarded
	x.engine.mu.Unlock()
	if discarded {
		return nil
	}
	return x.engine.stage(x.name)
}

// Discard drops the index at once: its content turned out to be damaged. A
// caller that acquires it from now on gets an empty one; fault.Unavailable tells
// a caller that has it already to acquire it again.
func (x *Index) Discard() error {
	e := x.engine
	e.mu.Lock()
	en := x.entry
	if en.dropped {
		e.mu.Unlock()
		return nil
	}
	en.dropped, x.discarded = true, true
	delete(e.mu.entries, en.name)
	var unique [12]byte
	_, _ = rand.Read(unique[:]) // never fails
	en.name += "#" + hex.EncodeToString(unique[:])
	e.mu.entries[en.name] = en
	place := e.newBusyLocked(x.name)
	e.mu.Unlock()
	_ = x.inst.Fail(errors.New("the index is set aside")) // nothing more is written
	err := e.stage(x.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(place)
	return err
}

// Sizes returns the bytes of the index, and those in use: what is left of it behind the
// next compaction.
func (x *Index) Sizes() (file, active int64, err error) {
	if file, err = x.FileSize(); err != nil {
		return 0, 0, err
	}
	used, err := x.inst.DB().EstimateDiskUsage([]byte{0}, []byte{0xff})
	return file, int64(used) + x.inst.Unwritten(), indexError(err)
}

// Flush makes durable what was committed until now.
func (x *Index) Flush() error {
	if err := x.Err(); err != nil || x.inst.ReadOnly() {
		return err
	}
	return indexError(x.inst.Flush())
}

// largeBatch is from how many bytes on the engine takes a batch as it is, in the place
// of a memtable.
const largeBatch = 4 << 20

// Settle gives the memory of large batches back. The engine lets go of the last ones
// only when others have come after them: the array of its queue of memtables refers
// to them until it is full, which is twice as many bytes as the batch for as long as
// the index is open and nothing is written. While the disk has too little room nothing
// is done.
func (x *Index) Settle() error {
	if !x.large.Load() || x.engine.IndexRoom() != nil {
		return nil //nolint:nilerr // it is done another time
	}
	x.large.Store(false)
	for range 2 { // memtables, which need another array
		if err := x.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Compact compacts the files.
func (x *Index) Compact(ctx context.Context) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := x.engine.IndexRoom(); err != nil {
		return err
	}
	if x.inst.ReadOnly() {
		return diskspace.ErrDiskFull()
	}
	return indexError(x.inst.Compact(ctx, nil, []byte{0}, []byte{0xff}))
}

// Signatures returns the names of the indexes of a copy that are on disk,
// sorted.
func (e *Engine) Signatures(store string) ([]string, error) {
	names, err := e.o.FS.List(e.path(indexDir(store)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list indexes: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// DropIndex removes an index of a copy as Drop does a store. The error is
// fault.NoCopy when there is none.
func (e *Engine) DropIndex(store, signature string) error {
	return e.drop(indexDir(store)+"/"+signature, func(name string) error {
		if _, err := e.o.FS.Stat(e.path(name)); err != nil {
			return noStore()
		}
		return e.stage(name)
	})
}

// dropIndexes drops all indexes of a store that can no longer be acquired.
func (e *Engine) dropIndexes(store string) error {
	dir := indexDir(store)
	for _, en := range e.takeIndexes(dir + "/") {
		_ = e.closeStores([]*entry{en}) // logged there
	}
	if _, err := e.o.FS.Stat(e.path(dir)); err != nil {
		return nil //nolint:nilerr // it never had one
	}
	if err := e.stage(dir); err != nil {
		return err
	}
	e.dirs.RemoveParents(dir)
	return nil
}

// takeIndexes takes the open indexes below a directory, to be dropped, and waits
// for those that are being opened or closed.
func (e *Engine) takeIndexes(prefix string) (out []*entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for again := true; again; {
		again = false
		for name, en := range e.mu.entries {
			switch {
			case !strings.HasPrefix(name, prefix) || slices.Contains(out, en):
			case en.busy != nil:
				wait := en.busy
				e.mu.Unlock()
				<-wait
				e.mu.Lock()
				again = true
			case en.unused != nil:
				en.dropped = true
				out = append(out, e.takeLocked(en))
			}
			if again {
				break
			}
		}
	}
	return out
}

// indexError marks what Pebble says about damaged files.
func indexError(err error) error {
	switch {
	case err == nil:
		return nil
	case pebble.IsCorruptionError(err):
		return fault.Wrap(fault.Corruption, "The index is damaged.", err)
	}
	return fmt.Errorf("index: %w", err)
}

// IndexBatch collects changes of an index that are committed together. It is
// meant to be used again.
type IndexBatch struct {
	x       *Index
	b       *pebble.Batch
	indexed bool
	large   bool // it was: see Close
}

// NewBatch returns an empty batch; Close it. reads says that the index is going
// to be read through it, which makes each change dearer.
func (x *Index) NewBatch(reads bool) *IndexBatch {
	if reads {
		return &IndexBatch{x: x, b: x.inst.DB().NewIndexedBatch(), indexed: true}
	}
	return &IndexBatch{x: x, b: x.inst.DB().NewBatch()}
}

// Iterate returns an iterator over the index as it is with the changes of the
// batch so far, which was made for that.
func (b *IndexBatch) Iterate(lo, hi []byte) (*IndexIterator, error) {
	return b.x.newIterator(b.b, lo, hi)
}

// Set gives a key a value.
func (b *IndexBatch) Set(key, value []byte) { _ = b.b.Set(key, value, nil) } // fails with a batch that is too large only, as Commit does

// Rewrite is Set for a key that is written again and again.
func (b *IndexBatch) Rewrite(key, value []byte) {
	b.x.rewritten.Wrote(key)
	b.Set(key, value)
}

// Merge appends to the value of a key; see Options.JoinIndex.
func (b *IndexBatch) Merge(key, operand []byte) { _ = b.b.Merge(key, operand, nil) } // as Set

// Delete removes a key.
func (b *IndexBatch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeleteRange removes the keys from lo on and below hi.
func (b *IndexBatch) DeleteRange(lo, hi []byte) { _ = b.b.DeleteRange(lo, hi, nil) }

// Len returns the size in bytes.
func (b *IndexBatch) Len() int { return b.b.Len() }

// writable returns when the index takes changes, or why it does not; see
// Store.writable.
func (x *Index) writable(ctx context.Context, bytes int) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := x.engine.space.IndexErr(int64(bytes)); err != nil {
		return err
	}
	if x.inst.ReadOnly() {
		return x.inst.Fail(errOpenedForReading)
	}
	if err := x.inst.Admit(ctx.Done()); err != nil {
		return err
	}
	return ctx.Err()
}

// Commit shows the changes to readers, all at once, and empties the batch. The
// error is fault.InsufficientStorage while there is too little room for indexes.
func (b *IndexBatch) Commit(ctx context.Context) error {
	if err := b.x.writable(ctx, b.b.Len()); err != nil {
		return err
	}
	bytes := b.b.Len()
	b.large = b.large || bytes > small.MaxBytes
	b.x.inst.Committing(bytes)
	b.x.committing.Add(1)
	if bytes >= largeBatch {
		b.x.large.Store(true)
	}
	err := b.b.Commit(pebble.NoSync)
	b.x.inst.Committed(bytes)
	b.x.version.Store(b.x.engine.versions.Add(1))
	b.x.committing.Add(-1)
	b.b.Reset()
	if failure := b.x.Err(); failure != nil {
		return failure // it may have gone nowhere
	}
	return indexError(err)
}

// Close gives the memory of the batch back: that of a large indexed one to the collector, as views of
// small stores take what other indexed batches had.
func (b *IndexBatch) Close() {
	if !b.indexed || !b.large && b.b.Len() <= small.MaxBytes {
		_ = b.b.Close() // of memory only
	}
}

// IndexSnapshot is an index at one moment, between two batches. It pins the
// index until Close. Iterators belong to one goroutine and are closed before.
type IndexSnapshot struct {
	x       *Index
	snap    *pebble.Snapshot
	version uint64
	once    sync.Once
}

// Snapshot returns the index as the last committed batch left it.
func (x *Index) Snapshot() (*IndexSnapshot, error) {
	if err := x.Err(); err != nil {
		return nil, err
	}
	x.engine.pin(&x.handle)
	s := &IndexSnapshot{x: x}
	version, idle := x.version.Load(), x.committing.Load() == 0
	s.snap = x.inst.DB().NewSnapshot()
	if idle && x.committing.Load() == 0 && x.version.Load() == version {
		s.version = version
	}
	return s, nil
}

// Version names the content: snapshots of one version have the same keys and
// values. No other content that the engine opens has it. 0: a batch was being
// committed when the snapshot was taken, so that it is not known.
func (s *IndexSnapshot) Version() uint64 { return s.version }

// Close gives the snapshot and its pin back. It may be called more than once.
func (s *IndexSnapshot) Close() {
	s.once.Do(func() {
		_ = s.snap.Close() // of memory only
		s.x.engine.ReleaseIndex(s.x)
	})
}

// Get appends the value of a key to dst; ok is false when there is none.
func (s *IndexSnapshot) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := s.x.Err(); err != nil {
		return dst, false, err
	}
	value, ok, err = records.Append(s.snap, dst, key)
	return value, ok, indexError(err)
}

// Borrow returns the value of a key without a copy, until back is closed, before the
// snapshot. There is no such key where back is nil.
func (s *IndexSnapshot) Borrow(key []byte) (value []byte, back io.Closer, err error) {
	if err := s.x.Err(); err != nil {
		return nil, nil, err
	}
	value, back, err = s.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	return value, back, indexError(err)
}

// Get is IndexSnapshot.Get as of the last committed batch.
func (x *Index) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := x.Err(); err != nil {
		return dst, false, err
	}
	value, ok, err = records.Append(x.inst.DB(), dst, key)
	return value, ok, indexError(err)
}

// Iterate returns an iterator over the keys from lo on and below hi; an empty
// bound is none. Close it.
func (s *IndexSnapshot) Iterate(lo, hi []byte) (*IndexIterator, error) {
	if err := s.x.Err(); err != nil {
		return nil, err
	}
	return s.x.newIterator(s.snap, lo, hi)
}

func (x *Index) newIterator(r pebble.Reader, lo, hi []byte) (*IndexIterator, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, indexError(err)
	}
	return &IndexIterator{it: it, hot: x.rewritten.Hot()}, nil
}

// IndexIterator walks over keys in either direction. Each step reports whether it
// stands on a key.
type IndexIterator struct {
	it   *pebble.Iterator
	hot  rewritten.Hot
	seek []byte // scratch
}

// First moves to the first key.
func (i *IndexIterator) First() bool { return i.it.First() }

// Last moves to the last key.
func (i *IndexIterator) Last() bool { return i.it.Last() }

// Next moves to the following key.
func (i *IndexIterator) Next() bool { return i.it.Next() }

// NextRewritten is Next among keys that IndexBatch.Rewrite has set.
func (i *IndexIterator) NextRewritten() bool {
	if key := i.it.Key(); i.hot.Has(key) {
		i.seek = append(append(i.seek[:0], key...), 0)
		return i.it.SeekGE(i.seek)
	}
	return i.it.Next()
}

// Prev moves to the preceding key.
func (i *IndexIterator) Prev() bool { return i.it.Prev() }

// SeekGE moves to the first key that is not below key.
func (i *IndexIterator) SeekGE(key []byte) bool { return i.it.SeekGE(key) }

// SeekLT moves to the last key below key.
func (i *IndexIterator) SeekLT(key []byte) bool { return i.it.SeekLT(key) }

// SetBounds changes the bounds; the slices must stay as they are. The iterator
// has to be moved after that.
func (i *IndexIterator) SetBounds(lo, hi []byte) { i.it.SetBounds(lo, hi) }

// Key returns the key it stands on, until it moves.
func (i *IndexIterator) Key() []byte { return i.it.Key() }

// Value returns the value of the key it stands on, until it moves.
func (i *IndexIterator) Value() ([]byte, error) {
	v, err := i.it.ValueAndErr()
	return v, indexError(err)
}

// Err returns why a step failed.
func (i *IndexIterator) Err() error { return indexError(i.it.Error()) }

// Close gives the iterator back and returns what Err does.
func (i *IndexIterator) Close() error { return indexError(i.it.Close()) }
