package repair

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/fault"
)

// push brings everything that a copy of this node has to another copy of the
// range, from their last checkpoint on. It is made for one run.
type push struct {
	*Copier
	local     *shard.Local // where the source is
	turn      int          // batches until another push may have its turn
	followers []pair       // who follows the source's log of purges; empty: not known
	// digest asks the target for a digest of its copy; nil: it cannot be asked.
	digest func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error)

	history []Entry // what both ends are known to share, newest first
	known   digestSet
	ids     []shard.IDRevs // of a batch of changes; used again
	asked   int            // batches that the target was asked about
}

// outcome tells how far a push came.
type outcome struct {
	more   bool   // its turn is over, but there is more to push
	upto   uint64 // of the source: what the target has now
	behind uint64 // of the source: what the target does not have
}

// run pushes until the target has everything that the source held when the
// last batch began, or until its turn is over. An error leaves what was pushed
// so far where it is; nothing is counted as pushed that is not durable.
func (p *push) run(ctx context.Context) (outcome, error) {
	var o outcome
	if err := p.source.locate(ctx); err != nil {
		return o, err
	}
	// Before the target is looked for, which may be away for long.
	held, err := p.holdPurges(ctx)
	if err != nil || p.source.seq == 0 && !held { // nothing was ever written here
		return o, err
	}
	if err := p.target.locate(ctx); err != nil {
		return o, err
	}
	if err := p.purges(ctx); err != nil || p.source.seq == 0 {
		return o, err
	}
	own, err := readCheckpoint(ctx, p.source.Copy, p.source.Name, p.checkpointID())
	if err != nil {
		return o, fmt.Errorf("checkpoint here: %w", err)
	}
	other, err := readCheckpoint(ctx, p.target.Copy, p.target.Name, p.checkpointID())
	if err != nil {
		return o, fmt.Errorf("checkpoint of the target: %w", err)
	}
	p.history = shared(own, other, p.source.position, p.target.position)
	o.upto = since(p.history)
	if o.upto == p.source.seq {
		return o, nil
	}
	o.behind = p.source.seq - o.upto
	p.progress.begin(o.upto, p.source.seq)
	p.learn(ctx)
	return o, p.follow(ctx, &o)
}

// purges brings the purges of both ends to each other. Then it offers what the source has of the
// documents that it brought purges of, regardless of the checkpoint: the target may have lost by
// such a purge what was written again since.
//
// How far the target's log has been fetched is not noted: its own push, which
// offers what the target has, goes by that.
func (p *push) purges(ctx context.Context) error {
	out, err := p.exchangePurges(ctx, nil)
	if err != nil || !out.news {
		return err
	}
	slices.Sort(out.ids)
	if err := p.documents(ctx, slices.Compact(out.ids)); err != nil {
		return err
	}
	c := p.purgeCheckpoint(out.upto)
	c.Target = hex.EncodeToString(p.target.uuid[:])
	return putPurgeCheckpoint(ctx, &p.source, c)
}

func (p *push) checkpointID() string {
	return CheckpointID(PrefixOf(p.source.uuid), PrefixOf(p.target.uuid))
}

// follow pushes the changes behind the checkpoint and moves that forward.
func (p *push) follow(ctx context.Context, o *outcome) error {
	stream, err := p.local.Changes(ctx, shard.ChangesRequest{
		Copy: p.source.Name, Since: o.upto, AllLeaves: true, Limit: p.batch,
	})
	if err != nil {
		return fmt.Errorf("changes here: %w", err)
	}
	defer stream.Close()
	var b shard.ChangeBatch
	upto := o.upto
	for n := 0; ; n++ {
		if p.asked == p.turn || n == maxTurn {
			o.more = true
			break
		}
		more, err := stream.Next(&b)
		if err == nil {
			err = p.changes(ctx, b.Rows)
		}
		if err != nil {
			return errors.Join(err, p.keep(ctx, o, upto))
		}
		upto = b.Upto
		p.progress.at.Store(upto)
		p.progress.touch()
		if !more {
			break
		}
	}
	return p.keep(ctx, o, upto)
}

// changes brings the documents of a batch of changes to the target, all that it
// does not know of them.
func (p *push) changes(ctx context.Context, rows []shard.Change) error {
	p.ids = p.ids[:0]
	holds := p.target.holds(&p.source, p.limits.Partitioned)
	for i := range rows {
		if (holds == nil || holds(rows[i].ID)) && !p.known.has(&rows[i]) {
			p.ids = append(p.ids, shard.IDRevs{ID: rows[i].ID, Revs: rows[i].Leaves})
		}
	}
	if len(p.ids) > 0 {
		p.asked++
	}
	return p.copyMissing(ctx, p.ids)
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
	now := p.target
	if err := now.locate(ctx); err != nil {
		return err
	}
	if now.uuid != p.target.uuid {
		return fault.New(fault.Conflict, "The target is another copy than before.")
	}
	c := Checkpoint{
		Source: p.source.uuid, Target: p.target.uuid,
		History: extend(p.history, Entry{Source: upto, Target: now.seq}),
	}
	body := c.encode()
	for _, e := range []*End{&p.target, &p.source} {
		if err := putLocal(ctx, e, p.checkpointID(), body); err != nil {
			return fmt.Errorf("write checkpoint at %s: %w", e.Node, err)
		}
	}
	p.history = c.History
	o.upto = upto
	o.behind = p.source.seq - min(upto, p.source.seq)
	return nil
}

// maxTurn is how many batches a push looks at in its turn when nothing of them
// is missing.
const maxTurn = 100

// learn gets to know what the target has taken since the checkpoint, or since it was made. A
// failure only makes the push ask more.
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
		p.known, err = newDigestSet(s, p.target.uuid, answer)
	}
	if err != nil {
		p.log.Debug("no digest of the target", zap.String("copy", p.target.Name), zap.String("node", p.target.Node), zap.Error(err))
	}
}

// quiet reports whether an error only says that one of the ends is not there
// (any more): the node is away, the copy was dropped or is not made yet, or
// this node is stopping.
func quiet(err error) bool {
	return fault.Is(err, fault.NoCopy) || fault.Is(err, fault.NodeDown) || fault.Is(err, fault.Closed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// callTimeout bounds a question to another node.
const callTimeout = 5 * time.Second
