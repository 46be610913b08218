package repair

import (
	"context"
	"fmt"

	"divan/cluster/replica"
	"divan/shard"
)

const (
	// parcelBytes and parcelEdits are the most that is sent together. A single
	// revision may exceed the bytes, but with its body and its path only: both
	// have come in one message before.
	parcelBytes = 1 << 20
	parcelEdits = 500
	// revsAtOnce is how many revisions are in memory together besides.
	revsAtOnce = 8
	// revBytes is about what a revision takes in a message.
	revBytes = 20
)

// parcel is the edits that go to the target together.
type parcel struct {
	edits []shard.Edit
	bytes int // about what they take in a message, the one in the making included
}

// copyRevs reads revisions and adds them to the parcel. One that is no longer
// stored at the source has been replaced or purged since it was found missing:
// what came instead follows, or has been noted as a change.
func (c *Copier) copyRevs(ctx context.Context, reqs []shard.OpenRevsRequest) error {
	if len(reqs) == 0 {
		return nil
	}
	found, err := c.open(ctx, reqs)
	if err != nil {
		return err
	}
	for i := range found {
		for _, r := range found[i].Results {
			if r.Doc == nil {
				continue
			}
			if err := c.add(ctx, r.Doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// add makes the edit that lets the target take over a revision. The parcel is
// sent first when that does not fit into it.
func (c *Copier) add(ctx context.Context, d *shard.Doc) error {
	text := len(d.ID) + len(d.Body) + revBytes*len(d.Revisions.IDs)
	var contents, small int64
	for i := range d.Atts {
		text += len(d.Atts[i].Name)
		n := d.Atts[i].StoredLength
		contents += n
		if n <= inlineAttachment {
			small += n
		}
	}
	if len(c.out.edits) >= parcelEdits || int64(c.out.bytes+text)+small > parcelBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.out.bytes += text
	e := shard.Edit{ID: d.ID, Path: d.Revisions, Deleted: d.Deleted, Body: d.Body}
	for _, a := range d.Atts {
		att, err := c.attachment(ctx, d.ID, a, contents > parcelBytes)
		if err != nil {
			return fmt.Errorf("copy attachment %q of %q: %w", a.Name, d.ID, err)
		}
		e.Atts = append(e.Atts, att)
	}
	c.out.edits = append(c.out.edits, e)
	return nil
}

// flush sends the parcel and returns when all of it is durable in the target.
func (c *Copier) flush(ctx context.Context) error {
	edits := c.out.edits
	if len(edits) == 0 {
		return nil
	}
	if err := c.wait(ctx, c.out.bytes); err != nil {
		return err
	}
	refused, err := replica.Follow.On(ctx, c.target.Copy, shard.FollowRequest{
		Copy: c.target.Name, Edits: edits, RevsLimit: c.limits.Revs, PurgesSeen: &c.seen,
	})
	for i := range refused {
		if err == nil && refused[i] != nil {
			err = fmt.Errorf("%q: %w", edits[i].ID, refused[i])
		}
	}
	c.progress.docs.Add(uint64(len(refused)))
	c.progress.touch()
	clear(edits)
	c.out = parcel{edits: edits[:0]}
	if err != nil {
		return fmt.Errorf("copy documents: %w", err)
	}
	return nil
}
