package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/config"
	"divan/shard"
	"divan/storage/fault"
)

// pusher does the pushes of the copies of this node.
type pusher struct {
	layout    *layout
	messenger *messenger
	joins     *joins
	local     *shard.Local
	config    *config.Holder
	bandwidth *bandwidth.Limit
	synced    func(it *item, o *outcome) // keeps how far a target is
	log       *zap.Logger
}

// push does one push of a pair.
func (u *pusher) push(ctx context.Context, it *item) ending {
	pairs := u.layout.pairsFrom(it.copy)
	db, _, _ := u.layout.meta.CopyIn(it.copy, u.layout.node)
	if db == nil || !slices.Contains(pairs, it.pair) {
		return vanished
	}
	cfg := u.config.Load().Repair
	source := u.layout.end(db, it.copy, u.layout.node, u.layout.own)
	target := u.layout.end(db, it.target(), it.node, u.layout.copies(it.node))
	p := &push{
		Copier: NewCopier(source, target, LimitsOf(db), u.log), local: u.local, turn: cfg.BatchCount, followers: pairs,
		digest: func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error) {
			return u.messenger.ask(ctx, it.node, message{Op: opDigest, Copy: it.target(), Since: since, Limit: limit, Seed: &s})
		},
	}
	p.batch, p.bandwidth, p.progress = cfg.BatchSize, u.bandwidth, it.progress
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.progress.stall = time.AfterFunc(stallTime, func() { cancel(errStalled) })
	defer p.progress.stall.Stop()
	role := u.layout.role(db, it)
	if fence := (fence{role.fence, db.FullGeneration}); fence.of != 0 && it.drained != fence {
		// This node knows that the target joins, or the source leaves. What it lets in from here on
		// gets to the target by itself.
		if err := u.local.Writes.Drain(ctx); err != nil {
			return failed
		}
		it.drained = fence
	}
	o, err := p.run(ctx)
	if err == nil {
		u.synced(it, &o)
	}
	if err == nil && !o.more && (role.fills || role.leaves) {
		err = u.taken(ctx, it, p, role)
	}
	return u.judge(ctx, it, &o, err)
}

// taken does what is left when a target has all documents of a source.
func (u *pusher) taken(ctx context.Context, it *item, p *push, role role) error {
	if role.leaves {
		u.joins.handedOver(joiner{it.copy, role.source}, role)
		return nil
	}
	if err := u.bringLocalDocs(ctx, it, p, role); err != nil {
		return err
	}
	return u.tellFilled(ctx, it.pair, role)
}

// bringLocalDocs makes the local documents of a target those of the source in whose place it comes. Of
// the others none brings any: each may have what a majority has deleted or replaced since.
func (u *pusher) bringLocalDocs(ctx context.Context, it *item, p *push, role role) error {
	span, _ := p.source.Intersect(p.target.Range)
	switch {
	case it.node == u.layout.node:
		return u.local.Clones.LocalDocs(ctx, shard.CloneOptions{
			Source: it.copy, Target: it.target(), Range: span, Partitioned: p.limits.Partitioned,
		})
	case role.moved && it.locals != role.target: // from then on it gets each edit
		if err := p.copyLocalDocs(ctx); err != nil {
			return fmt.Errorf("local documents: %w", err)
		}
		it.locals = role.target
	}
	return nil
}

// role describes the work of a push besides bringing copies in line.
type role struct {
	source, target uint64 // ids of the copies
	known          uint64 // generation of the map that this node knows
	fills          bool   // a full copy fills a joining one
	leaves         bool   // a copy that leaves hands over to a full one
	moved          bool   // the joining one comes instead of the full one
	fence          uint64 // id of the one of which this node has to have heard before; 0: none
}

// errStalled ends a push that makes no progress.
var errStalled = errors.New("repair: the push makes no progress")

// judge turns what came of a push into an ending.
func (u *pusher) judge(ctx context.Context, it *item, o *outcome, err error) ending {
	switch {
	case err == nil && o.more:
		return turnOver
	case err == nil:
		return caughtUp
	case fault.Is(err, fault.NodeDown):
		return nodeAway
	case fault.Is(err, fault.NoCopy) && !u.holds(ctx, it.copy):
		return vanished
	case quiet(err) && !errors.Is(context.Cause(ctx), errStalled):
		u.log.Debug("push to another copy is tried again", zap.String("copy", it.copy), zap.String("node", it.node), zap.Error(err))
		return failed
	default:
		u.log.Warn("push to another copy failed", zap.String("copy", it.copy), zap.String("node", it.node), zap.Error(err))
		return failed
	}
}

// holds reports whether the copy is on this node's disk.
func (u *pusher) holds(ctx context.Context, name string) bool {
	_, _, err := u.local.Position(ctx, name)
	return !fault.Is(err, fault.NoCopy)
}

// tellFilled tells a node that its joining copy has everything that this node's full copy
// had.
func (u *pusher) tellFilled(ctx context.Context, p pair, o role) error {
	_, err := u.messenger.ask(ctx, p.node, message{Op: opFilled, Copy: p.target(), Target: o.target, Source: o.source, Known: o.known})
	return err
}
