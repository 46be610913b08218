package repair

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
)

const (
	localPrefix = "_local/"
	// maxLocalTries is how often a batch is sent whose documents change all the time.
	maxLocalTries = 10
)

// copyLocalDocs makes the local documents of clients in the target, which is new, what they are in the
// source. Edits meanwhile go to both ends by themselves: what the source has otherwise after a batch was
// sent is sent again.
func (p *push) copyLocalDocs(ctx context.Context) error {
	for from, tries := localPrefix, 0; from != ""; {
		next, sent, err := p.copyLocalBatch(ctx, from)
		if err != nil {
			return err
		}
		if tries++; sent == 0 || tries == maxLocalTries { // else it is looked at once more
			from, tries = next, 0
		}
	}
	return nil
}

// copyLocalBatch does that with a batch from an id on. It returns where the next one begins, empty after
// the last, and how many documents were not the same.
func (p *push) copyLocalBatch(ctx context.Context, from string) (next string, sent int, err error) {
	s, err := p.local.LocalDocs.List(ctx, shard.LocalDocsRequest{Copy: p.source.Name, Lo: from, Hi: localPrefix + "\xff", HasHi: true})
	if err != nil {
		return "", 0, err
	}
	defer s.Close()
	var b shard.LocalBatch
	more, err := s.Next(&b)
	if err != nil || len(b.Rows) == 0 {
		return "", 0, err
	}
	last := b.Rows[len(b.Rows)-1].ID
	if more {
		next = last + "\x00"
	}
	there, err := p.targetLocalDocs(ctx, from, last)
	if err != nil {
		return "", 0, err
	}
	p.progress.touch()
	holds := p.target.holds(&p.source, p.limits.Partitioned)
	var edits []shard.Edit
	for i := range b.Rows {
		d := &b.Rows[i]
		has := there[d.ID]
		if d.Rev == 0 || holds != nil && !holds(d.ID) || has != nil && has.Rev == d.Rev && bytes.Equal(has.Body, d.Body) {
			continue
		}
		edits = append(edits, shard.Edit{ID: d.ID, Parent: doc.Rev{ID: strconv.FormatUint(d.Rev-1, 10)}, Body: d.Body})
	}
	if len(edits) == 0 {
		return next, 0, nil
	}
	refused, err := replica.Follow.On(ctx, p.target.Copy, shard.FollowRequest{Copy: p.target.Name, Edits: edits})
	return next, len(edits), errors.Join(append(refused, err)...)
}

// targetLocalDocs returns the local documents of the target between two ids, with both.
func (p *push) targetLocalDocs(ctx context.Context, from, last string) (map[string]*shard.LocalDoc, error) {
	s, err := replica.LocalDocs.On(ctx, p.target.Copy, shard.LocalDocsRequest{Copy: p.target.Name, Lo: from, Hi: last, HasHi: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := make(map[string]*shard.LocalDoc)
	var b shard.LocalBatch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			return nil, err
		}
		for i := range b.Rows {
			out[b.Rows[i].ID] = &shard.LocalDoc{ID: b.Rows[i].ID, Rev: b.Rows[i].Rev, Body: bytes.Clone(b.Rows[i].Body)}
		}
	}
	return out, nil
}
