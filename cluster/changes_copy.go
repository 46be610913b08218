package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/quorum"
	"divan/cluster/repair"
	"divan/shard"
	"divan/storage/fault"
)

// begin opens a part where a client that has seen since goes on, on the first
// copy that lets it, and returns that position.
func (f *Feed) begin(ctx context.Context, p *changePart, since Seq) (mark, error) {
	var failure error
	for _, t := range f.choices(ctx, p, since) {
		if slices.Contains(p.failed, t) {
			continue
		}
		p.target = t
		m, err := f.beginAt(ctx, p, since)
		if err == nil && f.wake != nil {
			err = f.watch(p)
		}
		if err == nil {
			return m, nil
		}
		f.shut(p)
		if f.final(err) {
			return m, err
		}
		failure = quorum.Telling(failure, err)
	}
	if failure == nil {
		failure = errNoCopy()
	}
	return mark{}, failure
}

// final reports whether an error ends the feed, whatever other copies there
// are: that of the request, a refusal, or that the database is gone.
func (f *Feed) final(err error) bool {
	if f.ctx.Err() != nil || quorum.Usable(err) {
		return true
	}
	return isNotFound(f.db.phrase(err))
}

// choices returns the copies of a part's range in the order in which they are
// tried: the one that since names, because only there the feed goes on exactly,
// then that of this node.
func (f *Feed) choices(ctx context.Context, p *changePart, since Seq) []target {
	copies := f.db.twins(p.target)
	id, ok := since.copyOf(p.target.Range)
	if !ok || f.query.Descending || len(copies) == 1 {
		return copies
	}
	if i := f.holder(ctx, copies, id); i > 0 {
		return append(append([]target{copies[i]}, copies[:i]...), copies[i+1:]...)
	}
	return copies
}

// holder returns which of the copies has an id, 0 when none says so soon.
func (f *Feed) holder(ctx context.Context, copies []target, id copyID) int {
	ctx, cancel := context.WithTimeout(ctx, f.db.c.reads.patience(writePatience))
	defer cancel()
	has := func(i int) bool {
		rep := f.db.c.replica(copies[i].node)
		if rep == nil {
			return false
		}
		uuid, _, err := rep.Position(ctx, copies[i].name)
		return err == nil && prefixOf(uuid) == id
	}
	if copies[0].node == f.db.c.node && has(0) {
		return 0
	}
	found := make([]bool, len(copies))
	var asking sync.WaitGroup
	for i := range copies {
		if copies[i].node != f.db.c.node {
			asking.Go(func() { found[i] = has(i) })
		}
	}
	asking.Wait()
	return max(slices.Index(found, true), 0)
}

// beginAt is begin on the copy that is the part's target.
func (f *Feed) beginAt(ctx context.Context, p *changePart, since Seq) (mark, error) {
	m := mark{begin: p.target.Begin, end: p.target.End}
	rep := f.db.c.replica(p.target.node)
	if rep == nil {
		return m, errNodeDown(p.target.node)
	}
	if since.now && !f.query.Descending {
		uuid, seq, err := f.position(ctx, p.target)
		m.copy, m.seq = prefixOf(uuid), seq
		return m, err // nothing to read yet
	}
	if f.query.Descending {
		head, err := f.open(ctx, p, rep, 0)
		m.copy, m.seq = prefixOf(head.UUID), head.Seq
		return m, err
	}
	guess := since.lowest(p.target.Range)
	head, err := f.open(ctx, p, rep, guess)
	if err != nil {
		return m, err
	}
	m.copy = prefixOf(head.UUID)
	m.seq = since.resume(p.target.Range, head, func(id copyID, seq uint64) uint64 {
		return f.shared(ctx, p, rep, head, mark{copy: id, seq: seq})
	})
	if m.seq != guess {
		f.shut(p)
		_, err = f.open(ctx, p, rep, m.seq)
	}
	return m, err
}

// shared returns up to where the part's copy is known to hold nothing but what
// a client has seen that has read another copy of the range up to a sequence.
func (f *Feed) shared(ctx context.Context, p *changePart, rep replica, head changesHead, seen mark) uint64 {
	ctx, cancel := context.WithTimeout(ctx, nudgeLimit)
	defer cancel()
	at := repair.Copy{Name: p.target.name, UUID: head.UUID, Seq: head.Seq}
	seq, err := repair.ResumePoint(ctx, rep, at, repair.Prefix(seen.copy), seen.seq)
	if err != nil {
		f.db.c.log.Debug("a feed goes back to the beginning of a range", zap.String("copy", p.target.name), zap.Error(err))
		return 0
	}
	return seq
}

// open opens the stream of a part behind a sequence.
func (f *Feed) open(ctx context.Context, p *changePart, rep replica, since uint64) (changesHead, error) {
	req := shard.ChangesRequest{
		Copy: p.target.name, Since: since, Desc: f.query.Descending, AllLeaves: f.query.AllLeaves,
		Filter: f.filter(p.target.Range), IncludeDocs: f.query.IncludeDocs, Conflicts: f.query.Conflicts,
		Limit: p.hint,
	}
	if p.target.node == f.db.c.node {
		head, stream, err := rep.Changes(ctx, req)
		if err == nil {
			p.read(stream, 0)
		}
		return head, err
	}
	ctx, stop := context.WithCancel(ctx)
	stall := time.AfterFunc(nudgeLimit, stop)
	head, stream, err := rep.Changes(ctx, req)
	if !stall.Stop() { // it has ended the context
		if err == nil {
			stream.Close()
		}
		err = fault.New(fault.Timeout, timeoutText)
	}
	if err != nil {
		stop()
		return head, err
	}
	p.stop = stop
	p.read(stream, stallLimit)
	return head, nil
}

// read makes a stream the one that is read; a batch has to come within limit,
// unless that is 0.
func (p *changePart) read(stream changeStream, limit time.Duration) {
	p.stream, p.more = stream, true
	p.ahead = &ahead[shard.ChangeBatch]{read: stream.Next, limit: limit}
}

// goOn has part i go on from another copy after the one it was read from broke
// off. A client that reads the feed sees rows again; how many depends on how
// much the two copies are known to share. It returns an error when there is no
// other copy, and when the feed runs backwards and has shown something: it
// cannot be told where it was, then.
func (f *Feed) goOn(ctx context.Context, i int, err error) error {
	p := f.parts[i]
	if f.final(err) || (f.query.Descending && p.shown) {
		return err
	}
	f.db.c.log.Debug("a feed goes on from another copy", zap.String("copy", p.target.name), zap.String("node", p.target.node), zap.Error(err))
	f.unask() // it is about the copy that is left now
	p.failed = append(p.failed, p.target)
	f.shut(p)
	p.unwatch()
	since := Seq{marks: f.at.marks}
	if f.query.Descending {
		since = f.query.Since
	}
	m, nextErr := f.begin(ctx, p, since)
	if nextErr != nil {
		return quorum.Telling(err, nextErr)
	}
	f.at.move(i, m.copy, m.seq)
	return nil
}

// position asks where a copy is.
func (f *Feed) position(ctx context.Context, t target) (uuid [16]byte, seq uint64, err error) {
	rep := f.db.c.replica(t.node)
	if rep == nil {
		return uuid, 0, errNodeDown(t.node)
	}
	if t.node != f.db.c.node {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, nudgeLimit)
		defer cancel()
	}
	return rep.Position(ctx, t.name)
}

// watch begins to watch the copy of a part.
func (f *Feed) watch(p *changePart) error {
	p.unwatch()
	rep := f.db.c.replica(p.target.node)
	if rep == nil {
		return errNodeDown(p.target.node)
	}
	w, err := rep.Watch(p.target.name, f.wake)
	if err == nil {
		p.watch = w
	}
	return err
}

func (p *changePart) unwatch() {
	if p.watch != nil {
		_ = p.watch.Close() // forgetting a watch cannot fail
	}
	p.watch = nil
}
