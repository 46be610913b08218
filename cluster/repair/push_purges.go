package repair

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/doc"
)

// purgesAtOnce is how many purges travel in one message.
const purgesAtOnce = 500

// purgeText is the local document that says how far the copy of another node
// is in a copy's log of purges. It lies in the copy whose log it is, and holds
// the log (shard.PurgePrefix).
type purgeText struct {
	PurgeSeq uint64 `json:"purge_seq"`
	Type     string `json:"type"`
	Node     string `json:"node"`        // that follows
	Target   string `json:"target_uuid"` // its copy
}

// purgeCheckpointID returns the id of that document for a follower. It names
// the node, not the copy, so that a copy that was lost frees what it held.
func purgeCheckpointID(node, follower string) string {
	return purgeCheckpointPrefix(node) + hashOf([]byte(follower))
}

func purgeCheckpointPrefix(node string) string {
	return shard.PurgePrefix + "mem3-" + hashOf([]byte(node)) + "-"
}

// exchangePurges brings the purges of both ends to each other, so that no
// revision that one of them has purged is pushed back to it. Then it offers
// what the source has of the documents that it brought purges of, whatever the
// checkpoint says: the target may have lost by such a purge what was written
// again since.
//
// How far the target's log has been fetched is not noted: its own push, which
// offers what the target has, goes by that.
func (p *push) exchangePurges(ctx context.Context) error {
	out, err := p.readPurges(ctx, &p.source, &p.target)
	if err == nil {
		err = p.movePurges(ctx, out.log, &p.target)
	}
	if err != nil {
		return fmt.Errorf("push purges: %w", err)
	}
	in, err := p.readPurges(ctx, &p.target, &p.source)
	if err == nil {
		err = p.movePurges(ctx, in.log, &p.source)
	}
	if err != nil {
		return fmt.Errorf("fetch purges: %w", err)
	}
	p.seen = in.upto
	if !out.news {
		return nil
	}
	if err := p.offer(ctx, out.log); err != nil {
		return err
	}
	uuid := hex.EncodeToString(p.target.uuid[:])
	if err := p.putPurgeText(ctx, &p.source, out.id, purgeText{PurgeSeq: out.upto, Node: p.target.node, Target: uuid}); err != nil {
		return fmt.Errorf("push purges: %w", err)
	}
	return nil
}

// purgesFor is what one end's log of purges has for the other.
type purgesFor struct {
	id   string // of the local document that says how far the other end is
	log  []shard.PurgeInfo
	upto uint64 // the sequence of the last entry
	news bool   // that document has to be written
}

// readPurges reads what one end has purged since the other followed its log the
// last time.
func (p *push) readPurges(ctx context.Context, from, to *end) (out purgesFor, err error) {
	out.id = purgeCheckpointID(from.node, to.node)
	was, known, err := readPurgeText(ctx, from.copies, p.name, out.id)
	if err != nil {
		return out, err
	}
	same := was.Target == hex.EncodeToString(to.uuid[:])
	if same { // else: a copy that has seen nothing yet, or is asked for the first time
		out.upto = was.PurgeSeq
	}
	if out.log, err = from.copies.Purges(ctx, p.name, out.upto); err != nil {
		return out, err
	}
	out.news = len(out.log) > 0 || known && !same
	if len(out.log) == 0 {
		return out, nil
	}
	if same && out.log[0].Seq > out.upto+1 {
		p.log.Error("purges were forgotten before another copy had them: what they removed may come back",
			zap.String("copy", p.name), zap.String("node", to.node), zap.Uint64("after", out.upto), zap.Uint64("oldest", out.log[0].Seq))
	}
	out.upto = out.log[len(out.log)-1].Seq
	return out, nil
}

// movePurges has one end do what the other has purged. What it knows already
// it does not do again.
func (p *push) movePurges(ctx context.Context, log []shard.PurgeInfo, to *end) error {
	for part := range slices.Chunk(log, purgesAtOnce) {
		items := make([]shard.PurgeItem, len(part))
		for i, e := range part {
			items[i] = shard.PurgeItem{UUID: e.UUID, ID: e.ID, Revs: e.Revs, Paths: e.Paths}
		}
		if _, err := to.copies.Purge(ctx, p.name, items); err != nil {
			return err
		}
	}
	return nil
}

// offer brings what the source has of purged documents to the target.
func (p *push) offer(ctx context.Context, log []shard.PurgeInfo) error {
	ids := make([]string, len(log))
	for i := range log {
		ids[i] = log[i].ID
	}
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), max(p.batch, 1)) {
		rows := make([]shard.Change, 0, len(part))
		for _, id := range part {
			found, err := p.local.OpenRevs(ctx, shard.OpenRevsRequest{Copy: p.name, ID: id, All: true, HeadOnly: true})
			if err != nil {
				return fmt.Errorf("read %q: %w", id, err)
			}
			c := shard.Change{ID: id}
			for _, r := range found {
				c.Leaves = append(c.Leaves, r.Rev)
			}
			if len(c.Leaves) > 0 {
				rows = append(rows, c)
			}
		}
		if err := p.rows(ctx, rows); err != nil {
			p.out.abandon(ctx, p)
			return err
		}
	}
	p.out.asked = 0 // it does not count as part of the turn
	return nil
}

// holdPurges makes sure that the source's log of purges waits for the target,
// also before the target has been seen for the first time, and before the first
// purge when the target is away: no push looks at the log again until it is
// back. It reports whether the log waits.
func (p *push) holdPurges(ctx context.Context) (logged bool, err error) {
	if p.prog.held {
		return true, nil
	}
	id := purgeCheckpointID(p.source.node, p.target.node)
	_, known, err := readPurgeText(ctx, p.source.copies, p.name, id)
	if err != nil {
		return false, fmt.Errorf("followers of the log of purges: %w", err)
	}
	if !known {
		log, err := p.source.copies.Purges(ctx, p.name, 0)
		if err != nil {
			return false, fmt.Errorf("log of purges: %w", err)
		}
		var before uint64
		switch {
		case len(log) > 0:
			before = log[0].Seq - 1
		case p.target.copies != nil || p.source.seq == 0:
			return false, nil
		}
		err = p.putPurgeText(ctx, &p.source, id, purgeText{PurgeSeq: before, Node: p.target.node})
		if err != nil {
			return false, fmt.Errorf("hold the log of purges: %w", err)
		}
	}
	p.prog.held = true
	return true, p.freePurges(ctx)
}

// freePurges removes what nodes left behind that hold no copy of the range any
// more, so that the log of purges does not wait for them.
func (p *push) freePurges(ctx context.Context) error {
	if len(p.holders) == 0 {
		return nil
	}
	prefix := purgeCheckpointPrefix(p.source.node)
	s, err := p.local.LocalDocs(ctx, shard.LocalDocsRequest{Copy: p.name, Lo: prefix, Hi: prefix + "~", HasHi: true, System: true})
	if err != nil {
		return fmt.Errorf("followers of the log of purges: %w", err)
	}
	defer s.Close()
	var b shard.LocalBatch
	if _, err := s.Next(&b); err != nil { // a range has fewer than a batch of nodes
		return fmt.Errorf("followers of the log of purges: %w", err)
	}
	for i := range b.Rows {
		var t purgeText
		if json.Unmarshal(b.Rows[i].Body, &t) == nil && slices.Contains(p.holders, t.Node) {
			continue
		}
		_, err := p.local.LocalDelete(ctx, p.name, b.Rows[i].ID, doc.Rev{})
		if err != nil && !isMissing(err) {
			return fmt.Errorf("followers of the log of purges: %w", err)
		}
	}
	return nil
}

func (p *push) putPurgeText(ctx context.Context, at *end, id string, t purgeText) error {
	t.Type = "internal_replication"
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode a checkpoint of purges: %w", err)
	}
	return putLocal(ctx, at.copies, p.name, id, body)
}

// Follower names a copy that follows the log of purges of another one.
type Follower struct {
	Log  string   // the node whose log it is
	Node string   // that follows
	UUID [16]byte // its copy
}

// PassedPurges returns the purge sequence of a copy up to which a follower is
// known to have done all purges of its log; 0 when nothing is known. from holds
// the copy whose log it is. Errors are those of LocalGet.
func PassedPurges(ctx context.Context, from LocalGetter, name string, f Follower) (uint64, error) {
	was, known, err := readPurgeText(ctx, from, name, purgeCheckpointID(f.Log, f.Node))
	if err != nil || !known || was.Target != hex.EncodeToString(f.UUID[:]) {
		return 0, err
	}
	return was.PurgeSeq, nil
}

// readPurgeText reads a checkpoint of purges. One that cannot be read counts
// as one that has seen nothing.
func readPurgeText(ctx context.Context, from LocalGetter, name, id string) (t purgeText, known bool, err error) {
	d, err := from.LocalGet(ctx, name, id)
	if isMissing(err) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	known = json.Unmarshal(d.Body, &t) == nil
	if !known {
		t = purgeText{}
	}
	return t, known, nil
}
