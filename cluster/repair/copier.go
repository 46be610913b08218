package repair

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// End is a copy that a Copier reads from or writes to.
type End struct {
	ring.Replica
	Copy replica.Copy // the same, as it is asked
	position
}

// holds returns what tells whether a document belongs to the copy, of those that another one
// has; nil: all do.
func (e *End) holds(from *End, partitioned bool) func(id string) bool {
	if e.Includes(from.Range) {
		return nil
	}
	return func(id string) bool { return e.Contains(ring.Hash(id, partitioned)) }
}

// locate finds out which copy is there, and where it is.
func (e *End) locate(ctx context.Context) error {
	if e.Copy.Away() {
		return fault.Newf(fault.NodeDown, "Node %s cannot be reached.", e.Node)
	}
	at, err := replica.Position.On(ctx, e.Copy, e.Name)
	if err != nil {
		return fmt.Errorf("position of the copy on %s: %w", e.Node, err)
	}
	e.uuid, e.seq = at.UUID, at.Seq
	return nil
}

// Copier brings what one copy holds to another copy: purges first, in both
// directions, or what one of them has purged would come back; then the
// revisions that the target does not know, each after the contents of its
// attachments. What is in memory does not grow with what there is to copy. It is
// used by one goroutine.
type Copier struct {
	source, target End
	limits         shard.Limits
	log            *zap.Logger
	batch          int              // documents asked about at once
	bandwidth      *bandwidth.Limit // nil: no limit
	progress       *progress

	seen uint64 // the target's purges that the source has done as well
	out  parcel
}

// documentsAtOnce is how many documents are asked about at once, unless the
// configuration says otherwise.
const documentsAtOnce = 64

// NewCopier returns a Copier between two copies of a database with these
// limits.
func NewCopier(source, target End, limits shard.Limits, log *zap.Logger) *Copier {
	return &Copier{source: source, target: target, limits: limits, log: log, batch: documentsAtOnce, progress: &progress{}}
}

// Documents brings the target everything that the source has of some documents,
// durable on return. An error leaves what was copied so far where it is;
// fault.NodeDown says that one of the nodes cannot be reached.
func (c *Copier) Documents(ctx context.Context, ids []string) error {
	for _, e := range []*End{&c.source, &c.target} {
		if err := e.locate(ctx); err != nil {
			return err
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	named := func(id string) bool {
		_, found := slices.BinarySearch(ids, id)
		return found
	}
	for tries := 1; ; tries++ {
		_, err := c.exchangePurges(ctx, named)
		if err == nil {
			err = c.documents(ctx, ids)
		}
		if tries == purgeRounds || !fault.Is(err, fault.Conflict) { // else there were purges meanwhile
			return err
		}
	}
}

// documents is Documents for ids in order, when the purges have been exchanged.
func (c *Copier) documents(ctx context.Context, ids []string) error {
	for part := range slices.Chunk(ids, max(c.batch, 1)) {
		reqs := make([]shard.OpenRevsRequest, len(part))
		for i, id := range part {
			reqs[i] = shard.OpenRevsRequest{ID: id, All: true, HeadOnly: true, RevOnly: true}
		}
		found, err := c.open(ctx, reqs)
		if err != nil {
			return err
		}
		docs := make([]shard.IDRevs, 0, len(part))
		for i := range found {
			leaves := found[i].Results
			if len(leaves) == 0 {
				continue
			}
			d := shard.IDRevs{ID: part[i]}
			for _, l := range leaves {
				d.Revs = append(d.Revs, l.Rev)
			}
			docs = append(docs, d)
		}
		if err := c.copyMissing(ctx, docs); err != nil {
			return err
		}
	}
	return nil
}

// copyMissing brings those of some leaves to the target that it does not know;
// they are durable there on return.
func (c *Copier) copyMissing(ctx context.Context, docs []shard.IDRevs) error {
	if len(docs) == 0 {
		return nil
	}
	size := 0
	for i := range docs {
		size += len(docs[i].ID) + revBytes*len(docs[i].Revs)
	}
	if err := c.wait(ctx, size); err != nil {
		return err
	}
	missing, err := replica.Missing.On(ctx, c.target.Copy, replica.MissingRequest{Copy: c.target.Name, IDs: docs})
	if err != nil {
		return fmt.Errorf("ask what is missing: %w", err)
	}
	var reqs []shard.OpenRevsRequest
	reading := 0 // revisions of reqs
	for i := range missing {
		for revs := range slices.Chunk(missing[i].Missing, revsAtOnce) {
			if reading+len(revs) > revsAtOnce {
				if err := c.copyRevs(ctx, reqs); err != nil {
					return err
				}
				reqs, reading = reqs[:0], 0
			}
			reqs = append(reqs, shard.OpenRevsRequest{ID: missing[i].ID, Revs: revs, WithPath: true})
			reading += len(revs)
		}
	}
	if err := c.copyRevs(ctx, reqs); err != nil {
		return err
	}
	return c.flush(ctx)
}

// open reads documents at the source.
func (c *Copier) open(ctx context.Context, reqs []shard.OpenRevsRequest) ([]shard.RevsAnswer, error) {
	found, err := replica.OpenRevsMany.On(ctx, c.source.Copy, replica.OpenRevsManyRequest{Copy: c.source.Name, Docs: reqs})
	for i := range found {
		if err == nil && found[i].Err != nil {
			err = fmt.Errorf("%q: %w", reqs[i].ID, found[i].Err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read what is to be copied: %w", err)
	}
	return found, nil
}

// wait waits until so many bytes may be sent.
func (c *Copier) wait(ctx context.Context, bytes int) error {
	if c.bandwidth == nil {
		return nil
	}
	c.progress.rest()
	defer c.progress.touch()
	return c.bandwidth.Wait(ctx, bytes)
}
