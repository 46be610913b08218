package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/fault"
)

// end is one end of a push: a copy on a node.
type end struct {
	node   string
	copies Copies
	position
}

// push brings what one copy has to another copy of the range. It is made for
// one run and used by one goroutine.
type push struct {
	name   string       // of the copy, the same on both nodes
	local  *shard.Local // where the source is
	source end
	target end
	limits shard.Limits
	batch  int // documents asked about at once
	turn   int // batches until another push may have its turn
	pace   *pace
	log    *zap.Logger
	prog   *progress

	holders []string // the nodes of the range; empty: not known
	// digest asks the target for a digest of its copy; nil: it cannot be asked.
	digest func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error)

	seen    uint64  // the target's purges that the source has done as well
	history []Entry // what both ends are known to share, newest first
	rebuild bool    // the target is to hear when it has everything, also when that is nothing
	idle    bool    // nothing was ever written to the source
	sieve   sieve
	out     parcel
}

// outcome is what came of a push.
type outcome struct {
	more   bool     // its turn is over, but there is more to push
	upto   uint64   // of the source: what the target has now
	behind uint64   // of the source: what the target does not have
	target [16]byte // uuid of the copy that was pushed to
}

// run pushes until the target has everything that the source held when the
// last batch began, or until its turn is over. An error leaves what was pushed
// so far where it is; nothing is counted as pushed that is not durable.
func (p *push) run(ctx context.Context) (outcome, error) {
	var o outcome
	err := p.locate(ctx)
	if err != nil || p.idle {
		return o, err
	}
	o.target = p.target.uuid
	if err := p.exchangePurges(ctx); err != nil {
		return o, err
	}
	if p.source.seq == 0 {
		return o, nil // nothing was ever written here
	}
	own, err := readCheckpoint(ctx, p.source.copies, p.name, p.checkpointID())
	if err != nil {
		return o, fmt.Errorf("checkpoint here: %w", err)
	}
	other, err := readCheckpoint(ctx, p.target.copies, p.name, p.checkpointID())
	if err != nil {
		return o, fmt.Errorf("checkpoint of the target: %w", err)
	}
	p.history = shared(own, other, p.source.position, p.target.position)
	o.upto = since(p.history)
	if o.upto == p.source.seq {
		return o, nil
	}
	o.behind = p.source.seq - o.upto
	p.prog.begin(o.upto, p.source.seq)
	p.learn(ctx)
	err = p.follow(ctx, &o)
	p.out.abandon(ctx, p)
	return o, err
}

// locate finds out which copies are at the two ends. What the source's log of
// purges has for the target is held first: the target may be away for long.
func (p *push) locate(ctx context.Context) (err error) {
	p.source.uuid, p.source.seq, err = p.source.copies.Position(ctx, p.name)
	if err != nil {
		return fmt.Errorf("position here: %w", err)
	}
	held, err := p.holdPurges(ctx)
	if err != nil {
		return err
	}
	if p.source.seq == 0 && !held && !p.rebuild {
		p.idle = true
		return nil
	}
	if p.target.copies == nil {
		return fault.Newf(fault.NodeDown, "Node %s cannot be reached.", p.target.node)
	}
	p.target.uuid, p.target.seq, err = p.target.copies.Position(ctx, p.name)
	if err != nil {
		return fmt.Errorf("position of the target: %w", err)
	}
	return nil
}

func (p *push) checkpointID() string {
	return CheckpointID(PrefixOf(p.source.uuid), PrefixOf(p.target.uuid))
}

// follow pushes the changes behind the checkpoint and moves that forward.
func (p *push) follow(ctx context.Context, o *outcome) error {
	stream, err := p.local.Changes(ctx, shard.ChangesRequest{
		Copy: p.name, Since: o.upto, AllLeaves: true, Limit: p.batch,
	})
	if err != nil {
		return fmt.Errorf("changes here: %w", err)
	}
	defer stream.Close()
	var b shard.ChangeBatch
	upto := o.upto
	for n := 0; ; n++ {
		if p.out.asked == p.turn || n == maxTurn {
			o.more = true
			break
		}
		more, err := stream.Next(&b)
		if err == nil {
			err = p.rows(ctx, b.Rows)
		}
		if err != nil {
			return errors.Join(err, p.keep(ctx, o, upto))
		}
		upto = b.Upto
		p.prog.move(upto)
		if !more {
			break
		}
	}
	return p.keep(ctx, o, upto)
}

// keep writes the checkpoint when the push got further. The target comes
// first: the source's is the one that tells that both have it.
func (p *push) keep(ctx context.Context, o *outcome, upto uint64) error {
	if upto <= since(p.history) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	uuid, seq, err := p.target.copies.Position(ctx, p.name)
	if err != nil {
		return fmt.Errorf("position of the target: %w", err)
	}
	if uuid != p.target.uuid {
		return fault.New(fault.Conflict, "The target is another copy than before.")
	}
	c := Checkpoint{
		Source: p.source.uuid, Target: p.target.uuid,
		History: extend(p.history, Entry{Source: upto, Target: seq}),
	}
	body := c.encode()
	for _, e := range []*end{&p.target, &p.source} {
		if err := putLocal(ctx, e.copies, p.name, p.checkpointID(), body); err != nil {
			return fmt.Errorf("write checkpoint at %s: %w", e.node, err)
		}
	}
	p.history = c.History
	o.upto = upto
	o.behind = p.source.seq - min(upto, p.source.seq)
	return nil
}

// wait waits until so many bytes may be sent.
func (p *push) wait(ctx context.Context, bytes int) error {
	p.prog.rest()
	defer p.prog.touch()
	return p.pace.wait(ctx, bytes)
}

// maxTurn is how many batches a push looks at in its turn when nothing of them
// is missing.
const maxTurn = 100

// learn gets to know what the target has taken since the checkpoint, or since
// it was made. Whatever prevents that only makes the push ask more.
func (p *push) learn(ctx context.Context) {
	if p.digest == nil || p.target.seq == 0 {
		return
	}
	var after uint64
	if len(p.history) > 0 {
		after = p.history[0].Target
	}
	s := newSeed()
	ahead := min(p.source.seq-since(p.history), uint64(maxTurn*p.batch))
	answer, err := p.digest(ctx, after, int(2*ahead)+spareDigest, s)
	if err == nil {
		p.sieve, err = newSieve(s, p.target.uuid, answer)
	}
	if err != nil {
		p.log.Debug("no digest of the target", zap.String("copy", p.name), zap.String("node", p.target.node), zap.Error(err))
	}
}

// rows brings the documents of a batch of changes to the target: all that it
// does not know of them.
func (p *push) rows(ctx context.Context, rows []shard.Change) error {
	ids := p.out.ids[:0]
	size := 0
	for i := range rows {
		if p.sieve.keeps(&rows[i]) {
			continue
		}
		ids = append(ids, shard.IDRevs{ID: rows[i].ID, Revs: rows[i].Leaves})
		size += len(rows[i].ID) + revBytes*len(rows[i].Leaves)
	}
	p.out.ids = ids
	if len(ids) == 0 {
		return nil
	}
	p.out.asked++
	if err := p.wait(ctx, size); err != nil {
		return err
	}
	missing, err := p.target.copies.Missing(ctx, p.name, ids)
	if err != nil {
		return fmt.Errorf("ask what is missing: %w", err)
	}
	for i := range missing {
		if len(missing[i].Missing) == 0 {
			continue
		}
		if err := p.document(ctx, &missing[i]); err != nil {
			return err
		}
	}
	return p.flush(ctx)
}

// revBytes is about what a revision takes in a message.
const revBytes = 20

// quiet reports whether an error only says that one of the ends is not there
// (any more): the node is away, the copy was dropped or is not made yet, or
// this node is stopping.
func quiet(err error) bool {
	return isNoCopy(err) || fault.Is(err, fault.NodeDown) || fault.Is(err, fault.Closed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// callTimeout bounds what is left of a push after its context has ended.
const callTimeout = 5 * time.Second
