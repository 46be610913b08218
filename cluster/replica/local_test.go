package replica

import (
	"context"
	"testing"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// calls is every call on a copy that may be refused.
func calls(g *Local, name string) map[string]func(ctx context.Context) error {
	edit := func(newEdits, trusted bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := Update.On(ctx, Copy{At: g}, shard.UpdateRequest{Copy: name, NewEdits: newEdits, Trusted: trusted, Edits: []shard.Edit{{
				ID: "d", Path: doc.Path{Start: 1, IDs: []string{"a"}}, Body: []byte(`{}`),
			}}})
			return err
		}
	}
	return map[string]func(ctx context.Context) error{
		"follow": edit(false, true), "decide": edit(true, false), "replicate": edit(false, false),
		"open": func(ctx context.Context) error {
			_, err := Open.On(ctx, Copy{At: g}, shard.OpenRequest{Copy: name, ID: "d"})
			return err
		},
		"open_revs": func(ctx context.Context) error {
			_, err := OpenRevs.On(ctx, Copy{At: g}, shard.OpenRevsRequest{Copy: name, ID: "d", All: true})
			return err
		},
		"missing": func(ctx context.Context) error {
			_, err := Missing.On(ctx, Copy{At: g}, MissingRequest{Copy: name})
			return err
		},
		"by id": func(ctx context.Context) error {
			_, err := DocsByID.On(ctx, Copy{At: g}, DocsByIDRequest{Copy: name, IDs: []string{"d"}})
			return err
		},
		"local": func(ctx context.Context) error {
			_, err := LocalGet.On(ctx, Copy{At: g}, LocalGetRequest{name, "_local/x"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"purge": func(ctx context.Context) error {
			_, err := Purge.On(ctx, Copy{At: g}, PurgeRequest{name, []shard.PurgeItem{{ID: "x"}}})
			return err
		},
		"put": func(ctx context.Context) error {
			s, err := PutAttachment.On(ctx, Copy{At: g}, PutAttachmentRequest{name, "d", [16]byte{1}})
			if err == nil {
				s.Abort()
			}
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := ReadAttachment.On(ctx, Copy{At: g}, shard.AttachmentRange{Copy: name, ID: "d"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"drop att": func(ctx context.Context) error {
			_, err := DropAttachments.On(ctx, Copy{At: g}, DropAttachmentsRequest{name, "d", [][16]byte{{1}}})
			return err
		},
		"info": func(ctx context.Context) error {
			_, err := Info.On(ctx, Copy{At: g}, name)
			return err
		},
		"partition": func(ctx context.Context) error {
			_, err := Partition.On(ctx, Copy{At: g}, PartitionRequest{name, "p"})
			return err
		},
		"all docs": func(ctx context.Context) error {
			s, err := AllDocs.On(ctx, Copy{At: g}, shard.DocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"local docs": func(ctx context.Context) error {
			s, err := LocalDocs.On(ctx, Copy{At: g}, shard.LocalDocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"changes": func(ctx context.Context) error {
			s, err := Changes.On(ctx, Copy{At: g}, shard.ChangesRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"purges": func(ctx context.Context) error {
			_, err := Purges.On(ctx, Copy{At: g}, PurgesRequest{Copy: name})
			return err
		},
		"position": func(ctx context.Context) error {
			_, err := Position.On(ctx, Copy{At: g}, name)
			return err
		},
		"watch": func(ctx context.Context) error {
			w, err := Watch.On(ctx, Copy{At: g}, WatchRequest{name, make(chan struct{}, 1)})
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"compact": func(ctx context.Context) error {
			_, err := Compact.On(ctx, Copy{At: g}, CompactRequest{Copy: name, DB: "db"})
			return err
		},
		"create": func(ctx context.Context) error {
			_, err := Create.On(ctx, Copy{At: g}, CreateRequest{Copy: name})
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

func TestLocal(t *testing.T) {
	const name = "shards/00000000-ffffffff/db.1763600000"
	local := newLocal(t)
	g := NewLocal(local.held)
	maintenance := false
	gone := false
	peers := g.ForPeers(func() bool { return maintenance }, func(copyName string) bool { return gone && copyName == name })
	ctx := t.Context()
	if err := local.held.Shards.Drop(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := g.CreateMissing(ctx, name, shard.CreateOptions{}, 2); err != nil {
		t.Fatal(err)
	}
	check := func(what string, g *Local, ctx context.Context, passes func(call string) bool) {
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
	check("incomplete, here", g, ctx, some)
	check("incomplete, for peers", peers, ctx, some)
	check("incomplete, for repair", peers, wire.ForRepair(ctx), all)
	if err := local.held.Shards.Rebuilt(name); err != nil {
		t.Fatal(err)
	}
	check("complete", peers, ctx, all)
	maintenance = true
	check("maintenance, here", g, ctx, all)
	check("maintenance, for peers", peers, ctx, func(string) bool { return false })
	check("maintenance, for repair", peers, wire.ForRepair(ctx), all)
	const reason = "Nodes are unable to service this request due to overloading or maintenance mode."
	if _, err := Open.On(ctx, Copy{At: peers}, shard.OpenRequest{Copy: name, ID: "x"}); err == nil || err.Error() != reason {
		t.Errorf("maintenance: the client is told %v", err)
	}
	maintenance, gone = false, true
	check("deleted, here", g, ctx, all)
	for _, ctx := range []context.Context{ctx, wire.ForRepair(ctx)} {
		for call, f := range calls(peers, name) {
			switch err := f(ctx); call {
			case "local", "read": // their calls take this answer for that of a copy
			default:
				if !fault.Is(err, fault.NoCopy) {
					t.Errorf("deleted: %s gives %v", call, err)
				}
			}
		}
	}
	if _, err := Drop.On(ctx, Copy{At: peers}, name); err != nil {
		t.Errorf("a copy of a deleted database is not dropped: %v", err)
	}

	// A copy without others holds all there is.
	if err := g.CreateMissing(ctx, name+"1", shard.CreateOptions{}, 0); err != nil || g.Rebuilding(name+"1") {
		t.Errorf("a copy without others: %v", err)
	}
}

func BenchmarkCheckIdle(b *testing.B) {
	const name = "shards/00000000-ffffffff/db.1763600000"
	g := newLocal(b)
	for b.Loop() {
		if err := g.check(b.Context(), name, Complete); err != nil {
			b.Fatal(err)
		}
	}
}
