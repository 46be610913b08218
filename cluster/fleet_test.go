package cluster

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"divan/cluster/repair"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/storage/doc"
)

// fleet is the other nodes of a world: real copies behind links that can be
// cut, slowed down, silenced, or made to lose answers. It also keeps what the
// coordinator notes for repair.
type fleet struct {
	links map[string]*link

	mu     sync.Mutex
	subs   map[int]func(string, bool)
	next   int
	missed []target
	synced [][]string
}

// trouble is what is wrong with a link.
type trouble int

const (
	fine    trouble = iota
	away            // not reachable, and known to be
	failing         // calls fail at once with fault.NodeDown
	silent          // calls hang until their context ends, and do nothing
	deaf            // calls are done, but their answers never come
	slow            // calls take slowness longer
	broken          // calls fail, streams break off after some batches
)

const slowness = 300 * time.Millisecond

func newFleet(locals map[string]*shard.Local) *fleet {
	f := &fleet{links: map[string]*link{}, subs: map[int]func(string, bool){}}
	for name, l := range locals {
		if name != node1 {
			f.links[name] = &link{node: name, to: ownCopies(l)}
		}
	}
	return f
}

func (f *fleet) find(node string) replica {
	l := f.links[node]
	if l == nil || l.now() == away {
		return nil
	}
	return l
}

func (f *fleet) subscribe(fn func(string, bool)) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	n := f.next
	f.subs[n] = fn
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, n)
	}
}

// set changes what is wrong with a link.
func (f *fleet) set(node string, t trouble) {
	l := f.links[node]
	was := trouble(l.state.Swap(int32(t)))
	if (was == away) == (t == away) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fn := range f.subs {
		fn(node, t != away)
	}
}

// Missed implements Repair.
func (f *fleet) Missed(name, node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed = append(f.missed, target{name: name, node: node})
}

// Sync implements Repair.
func (f *fleet) Sync(_ context.Context, copies []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = append(f.synced, copies)
	return nil
}

// Complete implements Repair.
func (f *fleet) Complete(ctx context.Context, node string, copies []string) ([]string, error) {
	l := f.links[node]
	return pass(ctx, l, func() ([]string, error) { return repair.Complete(l.to.(localCopies), copies) })
}

// misses returns the nodes that were noted since the last call.
func (f *fleet) misses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, m := range f.missed {
		if !slices.Contains(out, m.node) {
			out = append(out, m.node)
		}
	}
	f.missed = nil
	slices.Sort(out)
	return out
}

// down makes nodes unreachable until the returned function is called.
func (w *world) down(nodes ...string) (up func()) { return w.trouble(away, nodes...) }

// trouble sets what is wrong with nodes until the returned function is called.
func (w *world) trouble(t trouble, nodes ...string) (up func()) {
	for _, n := range nodes {
		w.fleet.set(n, t)
	}
	return func() {
		for _, n := range nodes {
			w.fleet.set(n, fine)
		}
	}
}

// without returns a handle on a database that has no copy on a node.
func (d *DB) without(node string) *DB {
	m := *d.meta
	m.Shards = slices.Clone(m.Shards)
	for i := range m.Shards {
		m.Shards[i].Nodes = slices.DeleteFunc(slices.Clone(m.Shards[i].Nodes), func(n string) bool { return n == node })
	}
	return newDB(d.c, &m)
}

// link is the copies of another node.
type link struct {
	node  string
	to    replica
	state atomic.Int32 // trouble
	calls atomic.Int64
	// batches is how many batches a stream gives before it breaks off, and
	// bytes of content, with broken.
	batches int
}

func (l *link) now() trouble { return trouble(l.state.Load()) }

// pass does a call as the link lets it.
func pass[T any](ctx context.Context, l *link, f func() (T, error)) (T, error) {
	var none T
	l.calls.Add(1)
	switch l.now() {
	case away, failing, broken:
		return none, errNodeDown(l.node)
	case silent:
		<-ctx.Done()
		return none, ctx.Err()
	case deaf:
		_, _ = f() // nobody hears
		<-ctx.Done()
		return none, ctx.Err()
	case slow:
		select {
		case <-time.After(slowness):
		case <-ctx.Done():
			return none, ctx.Err()
		}
	case fine:
	}
	return f()
}

func (l *link) only(ctx context.Context, f func() error) error {
	_, err := pass(ctx, l, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (l *link) Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error) {
	return pass(ctx, l, func() ([]shard.EditResult, error) { return l.to.Update(ctx, req) })
}

func (l *link) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	return pass(ctx, l, func() ([]shard.PurgeResult, error) { return l.to.Purge(ctx, name, items) })
}

func (l *link) Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error) {
	return pass(ctx, l, func() (*shard.Doc, error) { return l.to.Open(ctx, req) })
}

func (l *link) OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error) {
	return pass(ctx, l, func() ([]shard.RevResult, error) { return l.to.OpenRevs(ctx, req) })
}

func (l *link) OpenRevsMany(ctx context.Context, reqs []shard.OpenRevsRequest) ([][]shard.RevResult, []error, error) {
	var errs []error
	out, err := pass(ctx, l, func() (out [][]shard.RevResult, err error) {
		out, errs, err = l.to.OpenRevsMany(ctx, reqs)
		return out, err
	})
	return out, errs, err
}

func (l *link) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	return pass(ctx, l, func() ([]shard.IDMissing, error) { return l.to.Missing(ctx, name, ids) })
}

func (l *link) DocsByID(ctx context.Context, name string, ids []string, docs, conflicts bool) ([]shard.Row, error) {
	return pass(ctx, l, func() ([]shard.Row, error) { return l.to.DocsByID(ctx, name, ids, docs, conflicts) })
}

func (l *link) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	return pass(ctx, l, func() (*shard.LocalDoc, error) { return l.to.LocalGet(ctx, name, id) })
}

func (l *link) DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error {
	return l.only(ctx, func() error { return l.to.DropAttachments(ctx, name, id, keys) })
}

func (l *link) Create(ctx context.Context, name string, o shard.CreateOptions) error {
	return l.only(ctx, func() error { return l.to.Create(ctx, name, o) })
}

func (l *link) Drop(ctx context.Context, name string) error {
	return l.only(ctx, func() error { return l.to.Drop(ctx, name) })
}

func (l *link) Info(ctx context.Context, name string) (shard.Info, error) {
	return pass(ctx, l, func() (shard.Info, error) { return l.to.Info(ctx, name) })
}

func (l *link) Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error) {
	return pass(ctx, l, func() (shard.PartitionInfo, error) { return l.to.Partition(ctx, name, partition) })
}

func (l *link) Compact(ctx context.Context, name string, limits shard.Limits, db string) error {
	return l.only(ctx, func() error { return l.to.Compact(ctx, name, limits, db) })
}

func (l *link) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	return pass(ctx, l, func() ([]shard.PurgeInfo, error) { return l.to.Purges(ctx, name, since) })
}

func (l *link) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	err = l.only(ctx, func() (err error) {
		uuid, seq, err = l.to.Position(ctx, name)
		return err
	})
	return uuid, seq, err
}

func (l *link) Watch(name string, c chan struct{}) (io.Closer, error) {
	if l.now() != fine && l.now() != slow {
		return nil, errNodeDown(l.node)
	}
	inner, stop, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w, err := l.to.Watch(name, inner)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-inner:
				if l.now() == fine || l.now() == slow {
					wake(c) // otherwise nobody hears of it
				}
			case <-stop:
				return
			}
		}
	}()
	return closer(func() {
		_ = w.Close() // forgetting a watch cannot fail
		close(stop)
		<-ended
	}), nil
}

// fray is what a stream of a link has in common.
type fray struct {
	ctx  context.Context
	l    *link
	left int
}

// turn is called for each batch.
func (f *fray) turn() error {
	switch f.l.now() {
	case broken:
		if f.left--; f.left < 0 {
			return errNodeDown(f.l.node)
		}
	case away, failing:
		return errNodeDown(f.l.node)
	case silent, deaf:
		<-f.ctx.Done()
		return f.ctx.Err()
	case slow:
		select {
		case <-time.After(slowness):
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	case fine:
	}
	return f.ctx.Err()
}

type frayedDocs struct {
	fray
	docStream
}

func (f *frayedDocs) Next(b *shard.RowBatch) (bool, error) {
	if err := f.turn(); err != nil {
		return false, err
	}
	return f.docStream.Next(b)
}

func (l *link) AllDocs(ctx context.Context, req shard.DocsRequest) (docsHead, docStream, error) {
	var s docStream
	head, err := pass(ctx, l.opening(), func() (head docsHead, err error) {
		head, s, err = l.to.AllDocs(ctx, req)
		return head, err
	})
	if err != nil {
		return head, nil, err
	}
	return head, &frayedDocs{fray{ctx, l, l.batches}, s}, nil
}

// opening is the link as the opening of a stream sees it: with broken it
// succeeds, and nobody opens what nobody will hear of.
func (l *link) opening() *link {
	o := &link{node: l.node, to: l.to}
	switch t := l.now(); t {
	case broken:
	case deaf:
		o.state.Store(int32(silent))
	default:
		o.state.Store(int32(t))
	}
	return o
}

type frayedLocals struct {
	fray
	localStream
}

func (f *frayedLocals) Next(b *shard.LocalBatch) (bool, error) {
	if err := f.turn(); err != nil {
		return false, err
	}
	return f.localStream.Next(b)
}

func (l *link) LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (localStream, error) {
	s, err := pass(ctx, l.opening(), func() (localStream, error) { return l.to.LocalDocs(ctx, req) })
	if err != nil {
		return nil, err
	}
	return &frayedLocals{fray{ctx, l, l.batches}, s}, nil
}

type frayedChanges struct {
	fray
	changeStream
}

func (f *frayedChanges) Next(b *shard.ChangeBatch) (bool, error) {
	if err := f.turn(); err != nil {
		return false, err
	}
	return f.changeStream.Next(b)
}

func (l *link) Changes(ctx context.Context, req shard.ChangesRequest) (sequence.Head, changeStream, error) {
	var s changeStream
	head, err := pass(ctx, l.opening(), func() (head sequence.Head, err error) {
		head, s, err = l.to.Changes(ctx, req)
		return head, err
	})
	if err != nil {
		return head, nil, err
	}
	return head, &frayedChanges{fray{ctx, l, l.batches}, s}, nil
}

type frayedReader struct {
	fray
	io.ReadCloser
}

func (f *frayedReader) Read(p []byte) (int, error) {
	if err := f.turn(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(p[:min(len(p), 10_000)])
}

func (l *link) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	s, err := pass(ctx, l.opening(), func() (io.ReadCloser, error) { return l.to.ReadAttachment(ctx, r) })
	if err != nil {
		return nil, err
	}
	return &frayedReader{fray{ctx, l, l.batches}, s}, nil
}

type frayedSink struct {
	fray
	shard.AttachmentSink
}

func (f *frayedSink) Write(p []byte) (int, error) {
	if err := f.turn(); err != nil {
		return 0, err
	}
	return f.AttachmentSink.Write(p)
}

func (f *frayedSink) Close() error {
	if err := f.turn(); err != nil {
		return err
	}
	return f.AttachmentSink.Close()
}

func (l *link) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	s, err := pass(ctx, l.opening(), func() (shard.AttachmentSink, error) { return l.to.PutAttachment(ctx, name, id, key) })
	if err != nil {
		return nil, err
	}
	return &frayedSink{fray{ctx, l, l.batches}, s}, nil
}

// contentOf reads an attachment.
func contentOf(tb tester, d *DB, id string, a doc.Attachment) []byte {
	tb.Helper()
	r, err := d.ReadAttachment(tb.Context(), id, a, 0, -1)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = r.Close() }() // read only
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
