package cluster

import (
	"context"
	"testing"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// calls is every call on a copy that may be refused.
func calls(g *Guard, name string) map[string]func(ctx context.Context) error {
	edit := func(newEdits, trusted bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := g.Update(ctx, shard.UpdateRequest{Copy: name, NewEdits: newEdits, Trusted: trusted, Edits: []shard.Edit{{
				ID: "d", Path: doc.Path{Start: 1, IDs: []string{"a"}}, Body: []byte(`{}`),
			}}})
			return err
		}
	}
	return map[string]func(ctx context.Context) error{
		"follow": edit(false, true), "decide": edit(true, false), "replicate": edit(false, false),
		"open": func(ctx context.Context) error {
			_, err := g.Open(ctx, shard.OpenRequest{Copy: name, ID: "d"})
			return err
		},
		"open_revs": func(ctx context.Context) error {
			_, err := g.OpenRevs(ctx, shard.OpenRevsRequest{Copy: name, ID: "d", All: true})
			return err
		},
		"missing": func(ctx context.Context) error {
			_, err := g.Missing(ctx, name, nil)
			return err
		},
		"by id": func(ctx context.Context) error {
			_, err := g.DocsByID(ctx, name, []string{"d"}, false, false)
			return err
		},
		"local": func(ctx context.Context) error {
			_, err := g.LocalGet(ctx, name, "_local/x")
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"purge": func(ctx context.Context) error {
			_, err := g.Purge(ctx, name, []shard.PurgeItem{{ID: "x"}})
			return err
		},
		"put": func(ctx context.Context) error {
			s, err := g.PutAttachment(ctx, name, "d", [16]byte{1})
			if err == nil {
				s.Abort()
			}
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := g.ReadAttachment(ctx, shard.AttachmentRange{Copy: name, ID: "d"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"drop att": func(ctx context.Context) error { return g.DropAttachments(ctx, name, "d", [][16]byte{{1}}) },
		"info": func(ctx context.Context) error {
			_, err := g.Info(ctx, name)
			return err
		},
		"partition": func(ctx context.Context) error {
			_, err := g.Partition(ctx, name, "p")
			return err
		},
		"all docs": func(ctx context.Context) error {
			s, err := g.AllDocs(ctx, shard.DocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"local docs": func(ctx context.Context) error {
			s, err := g.LocalDocs(ctx, shard.LocalDocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"changes": func(ctx context.Context) error {
			s, err := g.Changes(ctx, shard.ChangesRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"purges": func(ctx context.Context) error {
			_, err := g.Purges(ctx, name, 0)
			return err
		},
		"position": func(ctx context.Context) error {
			_, _, err := g.Position(ctx, name)
			return err
		},
		"watch": func(context.Context) error {
			w, err := g.WatchOn(name, make(chan struct{}, 1))
			if err == nil {
				w.Close()
			}
			return err
		},
		"compact": func(ctx context.Context) error { return g.Compact(ctx, name, shard.Limits{}, "db") },
		"create": func(ctx context.Context) error {
			err := g.Create(ctx, name, shard.CreateOptions{})
			if fault.Is(err, fault.Exists) {
				return nil
			}
			return err
		},
	}
}

// writes are the calls that an incomplete copy takes: nothing is read or
// decided.
func writes() map[string]bool {
	return map[string]bool{"follow": true, "purge": true, "put": true, "drop att": true, "compact": true, "create": true}
}

func TestGuard(t *testing.T) {
	const name = "shards/00000000-ffffffff/db.1763600000"
	local := newLocal(t, nil)
	g := NewGuard(local)
	maintenance := false
	gone := false
	peers := g.ForPeers(func() bool { return maintenance }, func(copyName string) bool { return gone && copyName == name })
	ctx := t.Context()
	if err := g.CreateMissing(ctx, name, shard.CreateOptions{}, 2); err != nil {
		t.Fatal(err)
	}
	check := func(what string, g *Guard, ctx context.Context, passes func(call string) bool) {
		t.Helper()
		for call, f := range calls(g, name) {
			err := f(ctx)
			if passes(call) && err != nil {
				t.Errorf("%s: %s is refused: %v", what, call, err)
			}
			if !passes(call) && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %s gives %v", what, call, err)
			}
		}
	}
	all := func(string) bool { return true }
	some := func(call string) bool { return writes()[call] }
	byRepair := func(call string) bool { return call != "watch" }
	check("incomplete, here", g, ctx, some)
	check("incomplete, for peers", peers, ctx, some)
	check("incomplete, for repair", peers, wire.ForRepair(ctx), byRepair)
	if err := local.Rebuilt(name); err != nil {
		t.Fatal(err)
	}
	check("complete", peers, ctx, all)
	maintenance = true
	check("maintenance, here", g, ctx, all)
	check("maintenance, for peers", peers, ctx, func(string) bool { return false })
	check("maintenance, for repair", peers, wire.ForRepair(ctx), byRepair)
	const reason = "Nodes are unable to service this request due to overloading or maintenance mode."
	if _, err := peers.Open(ctx, shard.OpenRequest{Copy: name, ID: "x"}); err == nil || err.Error() != reason {
		t.Errorf("maintenance: the client is told %v", err)
	}
	maintenance, gone = false, true
	check("deleted, here", g, ctx, all)
	for _, ctx := range []context.Context{ctx, wire.ForRepair(ctx)} {
		for call, f := range calls(peers, name) {
			switch err := f(ctx); call {
			case "local", "read": // their calls take this answer for that of a copy
			default:
				if !isNoCopy(err) {
					t.Errorf("deleted: %s gives %v", call, err)
				}
			}
		}
	}
	if err := peers.Drop(ctx, name); err != nil {
		t.Errorf("a copy of a deleted database is not dropped: %v", err)
	}

	// A copy without others holds all there is, and what another node says about
	// the state of one does not count.
	if err := g.CreateMissing(ctx, name+"1", shard.CreateOptions{}, 0); err != nil || g.Rebuilding(name+"1") {
		t.Errorf("a copy without others: %v", err)
	}
	if err := g.Create(ctx, name+"2", shard.CreateOptions{Rebuilding: true}); err != nil || g.Rebuilding(name+"2") {
		t.Errorf("a copy that is new: %v", err)
	}
}

func BenchmarkGuardIdle(b *testing.B) {
	const name = "shards/00000000-ffffffff/db.1763600000"
	g := NewGuard(newLocal(b, nil))
	for b.Loop() {
		if err := g.reads(b.Context(), name); err != nil {
			b.Fatal(err)
		}
	}
}
