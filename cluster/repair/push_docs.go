package repair

import (
	"context"
	"fmt"
	"slices"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// parcelBytes and parcelEdits are the most that is sent together. A single
	// revision may exceed the bytes, but with its body and its path only: both
	// have come in one message before.
	parcelBytes = 1 << 20
	parcelEdits = 500
	// revsAtOnce is how many revisions of one document are in memory together.
	revsAtOnce = 8
)

// parcel is the edits that go to the target together.
type parcel struct {
	ids    []shard.IDRevs // of a batch of changes; used again
	asked  int            // batches that the target was asked about
	edits  []shard.Edit
	docs   []*shard.Doc // what the edits were made of
	bytes  int          // about what the edits take in a message, the one in the making included
	stored []upload     // contents that the edits refer to
	chunk  []byte       // for streaming them
}

// document reads what the target lacks of a document and adds it to the
// parcel. A revision that is no longer stored here has been replaced or purged
// since the changes were read: what came instead follows.
func (p *push) document(ctx context.Context, m *shard.IDMissing) error {
	for revs := range slices.Chunk(m.Missing, revsAtOnce) {
		found, err := p.local.OpenRevs(ctx, shard.OpenRevsRequest{Copy: p.name, ID: m.ID, Revs: revs, WithPath: true})
		if err != nil {
			return fmt.Errorf("read %q: %w", m.ID, err)
		}
		for _, r := range found {
			if r.Doc == nil {
				continue
			}
			if err := p.makeRoom(ctx, r.Doc); err != nil {
				return err
			}
			e, err := p.edit(ctx, r.Doc, m.PossibleAncestors)
			if err != nil {
				return err
			}
			p.out.edits = append(p.out.edits, e)
			p.out.docs = append(p.out.docs, r.Doc)
		}
	}
	return nil
}

// makeRoom sends the parcel when a revision does not fit into it.
func (p *push) makeRoom(ctx context.Context, d *shard.Doc) error {
	size := textBytes(d)
	for i := range d.Atts {
		if n := d.Atts[i].StoredLength; n <= inlineAttachment {
			size += int(n)
		}
	}
	if len(p.out.edits) < parcelEdits && p.out.bytes+size <= parcelBytes {
		return nil
	}
	return p.flush(ctx)
}

// textBytes is about what a revision takes in a message without the contents of
// its attachments.
func textBytes(d *shard.Doc) int {
	size := len(d.ID) + len(d.Body) + revBytes*len(d.Revisions.IDs)
	for i := range d.Atts {
		size += len(d.Atts[i].Name)
	}
	return size
}

// edit makes the edit that lets the target take over a revision.
func (p *push) edit(ctx context.Context, d *shard.Doc, ancestors []doc.Rev) (shard.Edit, error) {
	e := shard.Edit{ID: d.ID, Path: d.Revisions, Deleted: d.Deleted, Body: d.Body}
	p.out.bytes += textBytes(d)
	if len(d.Atts) == 0 {
		return e, nil
	}
	there, err := p.attachmentsThere(ctx, d, ancestors)
	if err != nil {
		return e, err
	}
	e.Atts = make([]shard.EditAttachment, len(d.Atts))
	for i, a := range d.Atts {
		if e.Atts[i], err = p.attachment(ctx, d.ID, a, there); err != nil {
			return e, err
		}
	}
	return e, nil
}

// flush sends the parcel and returns when all of it is durable in the target.
func (p *push) flush(ctx context.Context) error {
	if len(p.out.edits) == 0 {
		return nil
	}
	if err := p.wait(ctx, p.out.bytes); err != nil {
		return err
	}
	results, err := p.send(ctx)
	if fault.Is(err, fault.MissingStub) {
		// The revision that a stub leant on has changed or gone meanwhile.
		if err = p.unstub(ctx); err == nil {
			results, err = p.send(ctx)
		}
	}
	if err != nil {
		if !refused(err) {
			p.out.stored = nil // the target may have taken the edits: what they refer to stays
		}
		return fmt.Errorf("push documents: %w", err)
	}
	for i := range results {
		if results[i].Err != nil && err == nil {
			err = fmt.Errorf("push %q: %w", p.out.edits[i].ID, results[i].Err)
		}
	}
	p.prog.wrote(len(results))
	if settled := p.settleUploads(ctx); err == nil {
		err = settled
	}
	clear(p.out.edits)
	clear(p.out.docs)
	p.out.edits, p.out.docs, p.out.bytes = p.out.edits[:0], p.out.docs[:0], 0
	return err
}

func (p *push) send(ctx context.Context) ([]shard.EditResult, error) {
	return p.target.copies.Update(ctx, shard.UpdateRequest{
		Copy: p.name, Edits: p.out.edits, Limits: p.limits, Trusted: true, NoPath: true, PurgesSeen: &p.seen,
	})
}

// refused reports whether an error of a whole update says that nothing of it
// was done.
func refused(err error) bool {
	switch fault.KindOf(err) {
	case fault.Conflict, fault.MissingStub, fault.NotFound, fault.BadRequest:
		return true
	default:
		return false
	}
}
