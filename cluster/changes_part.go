package cluster

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/shard/ring"
)

// changePart is the changes of one range.
//
// A client that reads the feed sees rows again when it goes on from another
// copy; how many depends on how much the two copies are known to share.
type changePart struct {
	fanout.FailoverStream[feedPosition, changesBegin, shard.ChangeBatch]
	feed  *Feed
	index int // in Feed.parts
	hint  int // rows that are likely to come, 0: unknown

	rows  []shard.Change // of the current batch
	row   int            // the one that comes next
	upto  uint64         // where the current batch ends
	shown bool           // a row has been given out

	watch   io.Closer // nil: not watched
	watched ring.Replica
}

// feedPosition is where a part goes on.
type feedPosition struct {
	since sequence.Seq
	hint  int
}

// changesBegin holds what a copy tells when its changes are opened.
type changesBegin struct {
	mark    sequence.Mark // where they begin
	pending func(after uint64) (uint64, error)
}

// newPart returns a part that is not open yet. copies are in the order in which
// they are tried.
func (f *Feed) newPart(index int, copies []ring.Replica, hint int) *changePart {
	p := &changePart{feed: f, index: index, hint: hint}
	p.FailoverStream = fanout.FailoverStream[feedPosition, changesBegin, shard.ChangeBatch]{
		Database: f.db.Asking(), Log: f.db.log, Ctx: f.ctx, Kind: p, Copies: copies,
		// Another copy may show rows again: it is better to wait a little.
		Patience: fanout.NudgeLimit, Limit: fanout.NudgeLimit * time.Duration(len(copies)), Stall: fanout.StallLimit,
	}
	if f.query.Filter.Kind != 0 {
		p.Beat = f.query.Beat
	}
	return p
}

// target returns the copy that is read, or was last.
func (p *changePart) target() ring.Replica { return p.Copies[0] }

// rest ends the reading until there is something new. All copies are good then
// for going on.
func (p *changePart) rest() {
	p.Close()
	p.rows, p.row = nil, 0
	t := p.target()
	d, _ := p.Database.(*Asking) // by the map that it is read by now
	all := (*replicaSet)(d).routing.SameRange(t)
	if len(p.Copies) == len(all) {
		return
	}
	p.Copies = append([]ring.Replica{t}, slices.DeleteFunc(slices.Clone(all), func(o ring.Replica) bool { return o == t })...)
}

// Position implements fanout.RowKind. A feed that runs backwards and has shown
// something cannot tell another copy where it was.
func (p *changePart) Position() (feedPosition, bool) {
	f := p.feed
	switch {
	case f.query.Descending:
		return feedPosition{since: f.query.Since, hint: p.hint}, !p.shown
	case f.at.Marks == nil:
		return feedPosition{since: f.query.Since, hint: p.hint}, true
	default:
		return feedPosition{since: sequence.Of([]sequence.Mark{f.at.Marks[p.index]}), hint: p.hint}, true
	}
}

// Open implements fanout.RowKind: the changes of a copy from where a client goes on
// that has seen from.
func (p *changePart) Open(ctx context.Context, rep replica.Copy, t ring.Replica, from feedPosition) (fanout.Opened[changesBegin, shard.ChangeBatch], error) {
	f := p.feed
	out := fanout.Opened[changesBegin, shard.ChangeBatch]{Head: changesBegin{mark: sequence.Mark{Begin: t.Begin, End: t.End}}}
	m := &out.Head.mark
	if from.since.IsNow() && !f.query.Descending {
		at, err := f.position(ctx, t)
		m.Copy, m.Seq = sequence.PrefixOf(at.UUID), at.Seq
		return out, err // nothing to read yet
	}
	req := shard.ChangesRequest{
		Copy: t.Name, Desc: f.query.Descending, AllLeaves: f.query.AllLeaves,
		Filter: f.filter(t.Range), IncludeDocs: f.query.IncludeDocs, Conflicts: f.query.Conflicts,
		Limit: from.hint,
	}
	if !req.Desc {
		req.Since = from.since.Lowest(t.Range)
	}
	feed, err := replica.Changes.On(ctx, rep, req)
	if err != nil {
		return out, err
	}
	m.Copy, m.Seq = sequence.PrefixOf(feed.Head.UUID), feed.Head.Seq
	if !req.Desc {
		m.Seq = from.since.Resume(t.Range, feed.Head, func(id sequence.CopyID, seq uint64) uint64 {
			return f.shared(ctx, t, rep, feed.Head, sequence.Mark{Copy: id, Seq: seq})
		})
		if m.Seq != req.Since {
			feed.Close()
			req.Since = m.Seq
			if feed, err = replica.Changes.On(ctx, rep, req); err != nil {
				return out, err
			}
		}
	}
	out.Stream, out.Head.pending = feed.Stream, feed.Pending
	return out, nil
}

// Moved implements fanout.RowKind.
func (p *changePart) Moved(begin changesBegin) error {
	f := p.feed
	p.rows, p.row = nil, 0
	if f.at.Marks == nil { // the feed is being opened
		return nil
	}
	f.unask() // it was about the copy that was left
	f.at.Move(p.index, begin.mark.Copy, begin.mark.Seq)
	if f.wake == nil || (p.watch != nil && p.watched == p.target()) {
		return nil
	}
	return p.observe()
}

// observe begins to watch the copy.
func (p *changePart) observe() error {
	p.unwatch()
	p.watched = p.target()
	rep := p.feed.db.replica(p.watched)
	if rep.Away() {
		return fanout.NodeDown(p.watched.Node)
	}
	w, err := replica.Watch.On(p.Ctx, rep, replica.WatchRequest{Copy: p.watched.Name, C: p.feed.wake})
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

// choices returns the copies of a range in the order in which they are tried: the
// one that the client's sequence names, because only there the feed goes on
// exactly, then that of this node.
func (f *Feed) choices(ctx context.Context, t ring.Replica) []ring.Replica {
	copies := f.db.routing.SameRange(t)
	id, ok := f.query.Since.CopyOf(t.Range)
	if !ok || f.query.Descending || len(copies) == 1 {
		return copies
	}
	if i := f.holder(ctx, copies, id); i > 0 {
		return append(append([]ring.Replica{copies[i]}, copies[:i]...), copies[i+1:]...)
	}
	return copies
}

// holder returns which of the copies has an id, 0 when none says so soon. It is
// worth some time: a client reads all of a range again that goes on from another
// copy. The first copy that has the id ends the search.
func (f *Feed) holder(ctx context.Context, copies []ring.Replica, id sequence.CopyID) int {
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	has := func(i int) bool {
		rep := f.db.replica(copies[i])
		if rep.Away() {
			return false
		}
		at, err := replica.Position.On(ctx, rep, copies[i].Name)
		return err == nil && sequence.PrefixOf(at.UUID) == id
	}
	if copies[0].Node == f.db.node && has(0) {
		return 0
	}
	found := make([]bool, len(copies))
	var asking sync.WaitGroup
	for i := range copies {
		if copies[i].Node != f.db.node {
			asking.Go(func() {
				if found[i] = has(i); found[i] {
					cancel() // the others need not answer
				}
			})
		}
	}
	asking.Wait()
	return max(slices.Index(found, true), 0)
}

// shared returns up to where a copy is known to hold nothing but what
// a client has seen that has read another copy of the range up to a sequence.
func (f *Feed) shared(ctx context.Context, t ring.Replica, rep replica.Copy, head sequence.Head, seen sequence.Mark) uint64 {
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	at := repair.Copy{Name: t.Name, UUID: head.UUID, Seq: head.Seq}
	seq, err := repair.ResumePoint(ctx, rep, at, repair.Prefix(seen.Copy), seen.Seq)
	if err != nil {
		f.db.log.Debug("a feed goes back to the beginning of a range", zap.String("copy", t.Name), zap.Error(err))
		return 0
	}
	return seq
}

// position asks where a copy is.
func (f *Feed) position(ctx context.Context, t ring.Replica) (replica.At, error) {
	rep := f.db.replica(t)
	if rep.Away() {
		return replica.At{}, fanout.NodeDown(t.Node)
	}
	if t.Node != f.db.node {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fanout.NudgeLimit)
		defer cancel()
	}
	return replica.Position.On(ctx, rep, t.Name)
}
