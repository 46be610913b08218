package repair

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
)

// Siblings is the full copies of one range.
type Siblings struct {
	Copies   []End
	Limits   shard.Limits
	Patience time.Duration // how long a copy usually takes to answer, at most
	Log      *zap.Logger
}

// Refreshed is the outcome of Siblings.Refresh. Edits are named by their places in the call.
type Refreshed struct {
	Again  []int     // edits of which the copy has got what it lacked, ascending
	Failed []Failure // edits of which other copies know more than could be brought
	Errs   []error   // of copies that were asked what they know
}

// Failure is edits that could not be helped, and the cause.
type Failure struct {
	Edits []int
	Err   error
}

// Refresh helps a copy that has refused edits as conflicts, because it may be behind: it is when it
// does not know the revision that the client named and another copy does, or when it still has
// a document that is deleted elsewhere and the client means to create. Then it gets what it
// lacks from the other copy.
//
// A conflict with a revision that the copy knows, the usual one, costs one question to that copy.
func (s *Siblings) Refresh(ctx context.Context, at int, refused []shard.Edit) (out Refreshed) {
	suspects := s.unknown(ctx, at, refused)
	if len(suspects) == 0 {
		return out
	}
	ahead, errs := s.askAhead(ctx, at, refused, suspects)
	out.Errs = errs
	seen := make(map[int]bool, len(suspects))
	for other := range ahead {
		var mine []int
		for _, i := range ahead[other] {
			if !seen[i] {
				seen[i] = true
				mine = append(mine, i)
			}
		}
		if len(mine) == 0 {
			continue
		}
		ids := make([]string, len(mine))
		for k, i := range mine {
			ids[k] = refused[i].ID
		}
		if err := NewCopier(s.Copies[other], s.Copies[at], s.Limits, s.Log).Documents(ctx, ids); err != nil {
			s.Log.Debug("copy that is behind not refreshed", zap.String("copy", s.Copies[at].Name), zap.Error(err))
			out.Failed = append(out.Failed, Failure{mine, err})
			continue
		}
		out.Again = append(out.Again, mine...)
	}
	slices.Sort(out.Again) // edits of one document are decided in the order given
	return out
}

// unknown returns those of the refused edits for which the copy that refused
// them does not know the revision that the client named, and those that name
// none and would create a document.
func (s *Siblings) unknown(ctx context.Context, at int, refused []shard.Edit) (out []int) {
	var named []int
	for i := range refused {
		switch e := &refused[i]; {
		case !e.Parent.IsZero():
			named = append(named, i)
		case !e.Deleted:
			out = append(out, i)
		}
	}
	if len(named) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	answers, err := s.Copies[at].lacking(ctx, parents(refused, named))
	for k, i := range named {
		if err == nil && len(answers[k].Missing) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// parents returns the revisions that the client named in some edits.
func parents(edits []shard.Edit, some []int) []shard.IDRevs {
	out := make([]shard.IDRevs, len(some))
	for k, i := range some {
		out[k] = shard.IDRevs{ID: edits[i].ID, Revs: []doc.Rev{edits[i].Parent}}
	}
	return out
}

// lacking asks the copy which of some revisions it does not know.
func (e *End) lacking(ctx context.Context, revs []shard.IDRevs) ([]shard.IDMissing, error) {
	if e.Copy.Away() {
		return nil, fanout.NodeDown(e.Node)
	}
	return replica.Missing.On(ctx, e.Copy, replica.MissingRequest{Copy: e.Name, IDs: revs})
}

// askAhead asks all copies but one for the edits of which they know more, and returns
// these by copy. One that does not answer soon is waited for only as long as what the others
// know could be less than what a majority was given, and not for long: when too few copies
// can be asked, the refusal of one that may be behind is the best that is known.
func (s *Siblings) askAhead(ctx context.Context, at int, refused []shard.Edit, suspects []int) (ahead [][]int, errs []error) {
	type answer struct {
		other int
		ahead []int
		errs  []error
	}
	ctx, cancel := context.WithTimeout(ctx, fanout.MostPatience)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	inbox := make(chan answer, len(s.Copies))
	pending := 0
	for other := range s.Copies {
		if other == at || s.Copies[other].Copy.Away() {
			continue
		}
		pending++
		asking.Go(func() {
			ahead, errs := s.Copies[other].ahead(ctx, refused, suspects)
			inbox <- answer{other, ahead, errs}
		})
	}
	soon := time.NewTimer(s.Patience)
	defer soon.Stop()
	ahead = make([][]int, len(s.Copies))
	// The copy that refused is one that has answered. Of so many, each majority has one.
	known, enough, late := 1, len(s.Copies)-quorum.Majority(len(s.Copies))+1, false
	for pending > 0 && (!late || known < enough) {
		select {
		case a := <-inbox:
			pending--
			ahead[a.other] = a.ahead
			if len(a.errs) == 0 {
				known++
			}
			errs = append(errs, a.errs...)
		case <-soon.C:
			late = true
		}
	}
	// What others have refused meanwhile counts as well: it may tell of a newer map.
	cancel()
	asking.Wait()
	close(inbox)
	for a := range inbox {
		ahead[a.other], errs = a.ahead, append(errs, a.errs...)
	}
	return ahead, errs
}

// ahead returns those of some edits for which the copy knows the revision that
// the client named, or that the document is deleted. With an error there may be more.
func (e *End) ahead(ctx context.Context, edits []shard.Edit, suspects []int) (out []int, errs []error) {
	var named, unnamed []int
	var ids []string
	for _, i := range suspects {
		if edits[i].Parent.IsZero() {
			unnamed, ids = append(unnamed, i), append(ids, edits[i].ID)
		} else {
			named = append(named, i)
		}
	}
	if len(named) > 0 {
		answers, err := e.lacking(ctx, parents(edits, named))
		for k := range answers {
			if err == nil && len(answers[k].Missing) == 0 {
				out = append(out, named[k])
			}
		}
		errs = appendError(errs, err)
	}
	if len(unnamed) > 0 {
		rows, err := replica.DocsByID.On(ctx, e.Copy, replica.DocsByIDRequest{Copy: e.Name, IDs: ids})
		for k := range rows {
			if err == nil && rows[k].Deleted {
				out = append(out, unnamed[k])
			}
		}
		errs = appendError(errs, err)
	}
	return out, errs
}

// appendError appends an error that is one.
func appendError(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}

// SettlePurged deals with revisions that the target did not take over because they
// have been purged there. Either the purge has not reached the source, which decided
// their edits, or the edits bring them back and the source had done the purge. Only
// the source tells: both copies do the purges of each other, and if it still has a
// revision then, the target gets it from there.
//
// It returns which of the revisions, one of each document, the target still lacks. Those are
// nowhere, or will soon be. Whether the purge was asked for before or after the edit cannot be told.
func (c *Copier) SettlePurged(ctx context.Context, revs []shard.IDRevs) (gone []bool, err error) {
	ids := make([]string, len(revs))
	for i := range revs {
		ids[i] = revs[i].ID
	}
	if err := c.Documents(ctx, ids); err != nil {
		return nil, err
	}
	answers, err := c.target.lacking(ctx, revs)
	if err != nil {
		return nil, err
	}
	gone = make([]bool, len(revs))
	for i := range answers {
		gone[i] = len(answers[i].Missing) > 0
	}
	return gone, nil
}
