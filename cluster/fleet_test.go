package cluster

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/peers"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
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
	missed []ring.Replica
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

// newFleet links nodes. make makes a copy of a node that is asked for it.
func newFleet(group *meta.Meta, locals map[string]*shard.Local, make func(node, name string) error) *fleet {
	f := &fleet{links: map[string]*link{}, subs: map[int]func(string, bool){}}
	for name, l := range locals {
		if name != node1 {
			f.links[name] = &link{node: name, to: replica.NewLocal(replica.Held{
				Shards: l, Place: PlaceOn(name, group), Make: func(_ context.Context, copyName string) error { return make(name, copyName) },
			})}
		}
	}
	return f
}

func (f *fleet) Find(node string) replica.Copies {
	l := f.links[node]
	if l == nil || l.now() == away {
		return nil
	}
	return l
}

func (f *fleet) Subscribe(fn func(string, bool)) func() {
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
	f.missed = append(f.missed, ring.Replica{Copy: ring.Copy{Node: node}, Name: name})
}

// Sync implements Repair.
func (f *fleet) Sync(_ context.Context, copies []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = append(f.synced, copies)
	return nil
}

// misses returns the nodes that were noted since the last call.
func (f *fleet) misses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, m := range f.missed {
		if !slices.Contains(out, m.Node) {
			out = append(out, m.Node)
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
		m.Shards[i].Copies = slices.DeleteFunc(slices.Clone(m.Shards[i].Copies), func(c ring.Copy) bool { return c.Node == node })
	}
	return newDB(d.handles.c, &m)
}

// link is the copies of another node.
type link struct {
	node  string
	to    replica.Copies
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
		return none, fanout.NodeDown(l.node)
	case silent:
		<-ctx.Done()
		return none, ctx.Err()
	case deaf:
		_, _ = f() // the answer is not heard
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

// Do implements replica.Copies.
func (l *link) Do(ctx context.Context, c replica.Call) error {
	over := l
	switch q := c.(type) {
	case *replica.Asked[replica.WatchRequest, io.Closer]:
		return l.watch(ctx, q)
	case *replica.Asked[shard.DocsRequest, replica.Docs], *replica.Asked[shard.LocalDocsRequest, replica.Locals],
		*replica.Asked[shard.ChangesRequest, replica.Feed], *replica.Asked[shard.AttachmentRange, io.ReadCloser],
		*replica.Asked[replica.PutAttachmentRequest, shard.AttachmentSink]:
		over = l.opening()
	}
	if _, err := pass(ctx, over, func() (struct{}, error) { return struct{}{}, c.On(ctx, l.to) }); err != nil {
		return err
	}
	if over == l { // no stream
		return nil
	}
	f := fray{ctx, l, l.batches}
	switch q := c.(type) {
	case *replica.Asked[shard.DocsRequest, replica.Docs]:
		q.Answer.Stream = &frayed[shard.RowBatch]{f, q.Answer.Stream}
	case *replica.Asked[shard.LocalDocsRequest, replica.Locals]:
		q.Answer.Stream = &frayed[shard.LocalBatch]{f, q.Answer.Stream}
	case *replica.Asked[shard.ChangesRequest, replica.Feed]:
		feed := q.Answer
		q.Answer.Stream = &frayedChanges{frayed[shard.ChangeBatch]{f, feed.Stream}, &feed}
	case *replica.Asked[shard.AttachmentRange, io.ReadCloser]:
		q.Answer = &frayedReader{f, q.Answer}
	case *replica.Asked[replica.PutAttachmentRequest, shard.AttachmentSink]:
		q.Answer = &frayedSink{f, q.Answer}
	}
	return nil
}

func (l *link) watch(ctx context.Context, q *replica.Asked[replica.WatchRequest, io.Closer]) error {
	if l.now() != fine && l.now() != slow {
		return fanout.NodeDown(l.node)
	}
	c := q.Request.C
	inner, stop, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w, err := replica.Watch.On(ctx, replica.Copy{At: l.to, To: q.To}, replica.WatchRequest{Copy: q.Request.Copy, C: inner})
	if err != nil {
		return err
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-inner:
				if l.now() == fine || l.now() == slow {
					peers.Wake(c) // otherwise the waiter does not hear of it
				}
			case <-stop:
				return
			}
		}
	}()
	q.Answer = closer(func() {
		_ = w.Close() // forgetting a watch cannot fail
		close(stop)
		<-ended
	})
	return nil
}

// closer makes a function an io.Closer.
type closer func()

// Close implements io.Closer.
func (f closer) Close() error {
	f()
	return nil
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
			return fanout.NodeDown(f.l.node)
		}
	case away, failing:
		return fanout.NodeDown(f.l.node)
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

// frayed is rows over a link.
type frayed[B any] struct {
	fray
	replica.Stream[B]
}

func (f *frayed[B]) Next(b *B) (bool, error) {
	if err := f.turn(); err != nil {
		return false, err
	}
	return f.Stream.Next(b)
}

// frayedChanges is a feed over a link.
type frayedChanges struct {
	frayed[shard.ChangeBatch]
	feed *replica.Feed
}

func (f *frayedChanges) Pending(after uint64) (uint64, error) { return f.feed.Pending(after) }

// opening is the link as the opening of a stream sees it: with broken it succeeds, and with deaf no
// stream is opened, as its opener would not hear of it.
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
