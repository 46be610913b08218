package repair

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"divan/cluster/replica"
	"divan/shard"
)

const (
	// purgesAtOnce is how many purges travel in one message.
	purgesAtOnce = 500
	// purgeRounds bounds how often purges go to and fro, and how often documents
	// are copied again because there were purges meanwhile.
	purgeRounds = 8
)

// exchangePurges has either end do the purges of the documents that a filter
// lets through, nil: of all, which the other end has done. What a copy learns of a purge by doing it the other
// one has to learn as well, so this goes on until neither has anything new.
//
// Only what the other end is not known to have done is looked at. Else a copy
// that has dropped a purge from its log would take it for a new one, and do it
// once more to what was written again since.
func (c *Copier) exchangePurges(ctx context.Context, filter func(id string) bool) (out purgeTail, err error) {
	out, in := purgeTail{from: &c.source, to: &c.target}, purgeTail{from: &c.target, to: &c.source}
	for _, t := range []*purgeTail{&out, &in} {
		t.holds = t.to.holds(t.from, c.limits.Partitioned)
	}
	for round := range purgeRounds {
		moved := 0
		for _, t := range []*purgeTail{&out, &in} {
			if round == 0 {
				err = t.begin(ctx)
			}
			n := 0
			if err == nil {
				n, err = t.move(ctx, filter, c.log)
			}
			if err != nil {
				return out, fmt.Errorf("bring purges from %s to %s: %w", t.from.Node, t.to.Node, err)
			}
			moved += n
		}
		if moved == 0 {
			break
		}
	}
	c.seen = in.upto
	return out, nil
}

// purgeTail is the newest part of one end's log of purges: what comes after the
// purges that the other end is known to have done.
type purgeTail struct {
	from, to *End
	holds    func(id string) bool // which documents the other end has; nil: all
	same     bool                 // the other end is the copy that followed the log before
	news     bool                 // the checkpoint has to be written
	upto     uint64               // the purge sequence of the last entry read
	ids      []string             // documents of the entries that were moved
}

// begin goes to where the other end has followed the log.
func (t *purgeTail) begin(ctx context.Context) error {
	was, known, err := readPurgeCheckpoint(ctx, t.from, followerOf(t.from, t.to))
	t.same = was.Target == hex.EncodeToString(t.to.uuid[:])
	if t.same { // else: a copy that has seen nothing yet, or is asked for the first time
		t.upto = was.PurgeSeq
	}
	t.news = known && !t.same
	return err
}

// move has the other end do what has come since the last time, and returns how
// much that was. What it has done already it does not do again.
func (t *purgeTail) move(ctx context.Context, filter func(id string) bool, logger *zap.Logger) (int, error) {
	log, err := replica.Purges.On(ctx, t.from.Copy, replica.PurgesRequest{Copy: t.from.Name, Since: t.upto})
	if err != nil || len(log) == 0 {
		return 0, err
	}
	if t.same && filter == nil && log[0].Seq > t.upto+1 {
		logger.Error("purges were forgotten before another copy had them: what they removed may come back",
			zap.String("copy", t.from.Name), zap.String("node", t.to.Node), zap.Uint64("after", t.upto), zap.Uint64("oldest", log[0].Seq))
	}
	t.upto, t.news = log[len(log)-1].Seq, true
	for _, f := range []func(id string) bool{filter, t.holds} {
		if f != nil {
			log = slices.DeleteFunc(log, func(p shard.PurgeInfo) bool { return !f(p.ID) })
		}
	}
	for part := range slices.Chunk(log, purgesAtOnce) {
		items := make([]shard.PurgeItem, len(part))
		for i, p := range part {
			items[i] = shard.PurgeItem{UUID: p.UUID, ID: p.ID, Revs: p.Revs, Paths: p.Paths}
			t.ids = append(t.ids, p.ID)
		}
		if _, err := replica.Purge.On(ctx, t.to.Copy, replica.PurgeRequest{Copy: t.to.Name, Items: items}); err != nil {
			return 0, err
		}
	}
	return len(log), nil
}
