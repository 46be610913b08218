package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"divan/cluster/quorum"
	"divan/shard"
	"divan/storage/doc"
)

// PurgeOutcome answers one item of a purge.
type PurgeOutcome struct {
	ID       string
	Purged   []doc.Rev // those of the named revisions that were leaves and are gone
	Accepted bool      // at least one copy has done it, but fewer than w
	Err      error     // no copy has done it
}

// Purge removes leaves of documents for good, in the order given, and answers
// item by item: revisions that are not leaves are left out of Purged, which is
// empty for a document that does not exist. w is the number of copies that
// must have done it, 0 for more than half. Each item enters the log of purges
// of every copy under one uuid, so that a copy that gets it twice, directly
// and by synchronisation, does it once.
func (d *DB) Purge(ctx context.Context, w int, items []shard.PurgeItem) ([]PurgeOutcome, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	groups := d.group(len(items), func(i int) string { return items[i].ID })
	out := make([]PurgeOutcome, len(items))
	err := each(len(groups), func(g int) error {
		mine := make([]shard.PurgeItem, len(groups[g].items))
		for i, at := range groups[g].items {
			mine[i] = items[at]
			if mine[i].UUID == ([16]byte{}) {
				rand.Read(mine[i].UUID[:]) // never fails, says its documentation
			}
		}
		for i, o := range d.purge(ctx, groups[g].stretch, w, mine) {
			out[groups[g].items[i]] = o
		}
		return nil
	})
	return out, err
}

// purge has every copy of a stretch do the same items. There is nothing to
// decide, so all copies are asked at once.
func (d *DB) purge(ctx context.Context, s *stretch, w int, items []shard.PurgeItem) []PurgeOutcome {
	answers := make([][]shard.PurgeResult, len(s.copies))
	errs := make([]error, len(s.copies))
	_ = each(len(s.copies), func(i int) error { // errors are counted one by one below
		t := s.copies[i]
		rep := d.c.replica(t.node)
		if rep == nil {
			errs[i] = errNodeDown(t.node)
			return nil
		}
		answers[i], errs[i] = rep.Purge(ctx, t.name, items)
		return nil
	})
	out := make([]PurgeOutcome, len(items))
	for k := range items {
		q := quorum.NewWrite(len(s.copies), w)
		out[k].ID = items[k].ID
		for i := range s.copies {
			if errs[i] != nil {
				q.Lose(errs[i])
				continue
			}
			q.Store()
			if len(answers[i][k].Purged) > len(out[k].Purged) {
				out[k].Purged = answers[i][k].Purged
			}
		}
		outcome, err := q.Outcome()
		out[k].Accepted, out[k].Err = outcome == quorum.Accepted, d.explain(err)
	}
	return out
}

// PurgedInfos returns the log of purges: for each purge that is still
// remembered the document and the revisions that were named. The log holds at
// most _purged_infos_limit entries per shard, so it is returned whole.
func (d *DB) PurgedInfos(ctx context.Context) ([]shard.PurgeInfo, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	parts := make([][]shard.PurgeInfo, len(picked))
	err = each(len(picked), func(i int) error {
		rep := d.c.replica(picked[i].node)
		if rep == nil {
			return errNodeDown(picked[i].node)
		}
		var err error
		parts[i], err = rep.Purges(ctx, picked[i].name, 0)
		return err
	})
	if err != nil {
		return nil, d.explain(err)
	}
	return distinct(slices.Concat(parts...)), nil
}

// distinct sorts the log by document and lists a purge that was asked for
// again once only, as CouchDB does.
func distinct(infos []shard.PurgeInfo) []shard.PurgeInfo {
	slices.SortStableFunc(infos, comparePurges)
	return slices.CompactFunc(infos, func(a, b shard.PurgeInfo) bool { return comparePurges(a, b) == 0 })
}

func comparePurges(a, b shard.PurgeInfo) int {
	if c := strings.Compare(a.ID, b.ID); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Revs, b.Revs, doc.Rev.Compare)
}
