package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// purgeCheckpoint is the local document that says how far the copy of another
// node is in a copy's log of purges. It lies in the copy whose log it is, and holds
// the log (shard.PurgePrefix).
type purgeCheckpoint struct {
	PurgeSeq uint64 `json:"purge_seq"`
	Type     string `json:"type"`
	Node     string `json:"node"`           // that follows
	Target   string `json:"target_uuid"`    // its copy
	Copy     string `json:"copy,omitempty"` // name of that, where it is another one
}

// follower is a copy that follows the log of purges of another one.
type follower struct{ node, copy string } // copy: its name, where it is another one

func followerOf(of, by *End) follower {
	if of.Name == by.Name {
		return follower{node: by.Node}
	}
	return follower{by.Node, by.Name}
}

// purgeCheckpoint returns the checkpoint of the target at a purge sequence of the source.
func (p *push) purgeCheckpoint(seq uint64) purgeCheckpoint {
	f := followerOf(&p.source, &p.target)
	return purgeCheckpoint{PurgeSeq: seq, Node: f.node, Copy: f.copy}
}

// purgeCheckpointID returns the id of that document for a follower. It names
// the node, not the copy, so that a copy that was lost frees what it held.
func purgeCheckpointID(node string, f follower) string {
	text := f.node
	if f.copy != "" {
		text += "\x00" + f.copy
	}
	return purgeCheckpointPrefix(node) + hashOf([]byte(text))
}

func purgeCheckpointPrefix(node string) string {
	return shard.PurgePrefix + "mem3-" + hashOf([]byte(node)) + "-"
}

// readPurgeCheckpoint reads how far a node is in an end's log of purges. What
// cannot be read counts as a node that has seen nothing.
func readPurgeCheckpoint(ctx context.Context, of *End, f follower) (p purgeCheckpoint, known bool, err error) {
	d, err := replica.LocalGet.On(ctx, of.Copy, replica.LocalGetRequest{Copy: of.Name, ID: purgeCheckpointID(of.Node, f)})
	if fault.Is(err, fault.NotFound) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("checkpoint of purges: %w", err)
	}
	if known = json.Unmarshal(d.Body, &p) == nil; !known {
		p = purgeCheckpoint{}
	}
	return p, known, nil
}

func putPurgeCheckpoint(ctx context.Context, of *End, p purgeCheckpoint) error {
	p.Type = "internal_replication"
	body, _ := json.Marshal(p) // strings and numbers: it cannot fail
	if err := putLocal(ctx, of, purgeCheckpointID(of.Node, follower{p.Node, p.Copy}), body); err != nil {
		return fmt.Errorf("write checkpoint of purges: %w", err)
	}
	return nil
}

// holdPurges makes sure that the source's log of purges waits for the target,
// also before the target has been seen for the first time, and before the first
// purge when the target is away: no push looks at the log again until it is
// back. It reports whether the log waits.
func (p *push) holdPurges(ctx context.Context) (logged bool, err error) {
	if p.progress.held {
		return true, nil
	}
	_, known, err := readPurgeCheckpoint(ctx, &p.source, followerOf(&p.source, &p.target))
	if err != nil {
		return false, err
	}
	if !known {
		log, err := p.local.Purges(ctx, p.source.Name, 0)
		if err != nil {
			return false, fmt.Errorf("log of purges: %w", err)
		}
		var before uint64
		switch {
		case len(log) > 0:
			before = log[0].Seq - 1
		case !p.target.Copy.Away() || p.source.seq == 0:
			return false, nil
		}
		if err := putPurgeCheckpoint(ctx, &p.source, p.purgeCheckpoint(before)); err != nil {
			return false, err
		}
	}
	p.progress.held = true
	return true, p.freePurges(ctx)
}

// freePurges removes what followers left behind that are not in the map any
// more, so that the log of purges does not wait for them.
func (p *push) freePurges(ctx context.Context) error {
	if len(p.followers) == 0 {
		return nil
	}
	prefix := purgeCheckpointPrefix(p.source.Node)
	s, err := p.local.LocalDocs.List(ctx, shard.LocalDocsRequest{Copy: p.source.Name, Lo: prefix, Hi: prefix + "~", HasHi: true, System: true})
	if err != nil {
		return fmt.Errorf("followers of the log of purges: %w", err)
	}
	defer s.Close()
	var b shard.LocalBatch
	if _, err := s.Next(&b); err != nil { // a range has fewer than a batch of nodes
		return fmt.Errorf("followers of the log of purges: %w", err)
	}
	for i := range b.Rows {
		var t purgeCheckpoint
		if json.Unmarshal(b.Rows[i].Body, &t) == nil && slices.ContainsFunc(p.followers, func(f pair) bool { return f.node == t.Node && f.to == t.Copy }) {
			continue
		}
		_, err := p.local.LocalDocs.Delete(ctx, p.source.Name, b.Rows[i].ID, doc.Rev{})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return fmt.Errorf("followers of the log of purges: %w", err)
		}
	}
	return nil
}
