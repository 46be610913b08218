package replica

import (
	"context"
	"testing"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// calls is every call on a copy that may be refused.
func calls(c Copy, name string) map[string]func(ctx context.Context) error {
	edits := []shard.Edit{{ID: "d", Path: doc.Path{Start: 1, IDs: []string{"a"}}, Body: []byte(`{}`)}}
	decide := func(newEdits bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := Decide.On(ctx, c, shard.DecideRequest{Copy: name, NewEdits: newEdits, Edits: edits})
			return err
		}
	}
	return map[string]func(ctx context.Context) error{
		"decide": decide(true), "replicate": decide(false),
		"follow": func(ctx context.Context) error {
			_, err := Follow.On(ctx, c, shard.FollowRequest{Copy: name, Edits: edits})
			return err
		},
		"open": func(ctx context.Context) error {
			_, err := Open.On(ctx, c, shard.OpenRequest{Copy: name, ID: "d"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"open_revs": func(ctx context.Context) error {
			_, err := OpenRevs.On(ctx, c, shard.OpenRevsRequest{Copy: name, ID: "d", All: true})
			return err
		},
		"missing": func(ctx context.Context) error {
			_, err := Missing.On(ctx, c, MissingRequest{Copy: name})
			return err
		},
		"by id": func(ctx context.Context) error {
			_, err := DocsByID.On(ctx, c, DocsByIDRequest{Copy: name, IDs: []string{"d"}})
			return err
		},
		"local": func(ctx context.Context) error {
			_, err := LocalGet.On(ctx, c, LocalGetRequest{name, "_local/x"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"purge": func(ctx context.Context) error {
			_, err := Purge.On(ctx, c, PurgeRequest{name, []shard.PurgeItem{{ID: "x"}}})
			return err
		},
		"put": func(ctx context.Context) error {
			s, err := PutAttachment.On(ctx, c, PutAttachmentRequest{name, "d", [16]byte{1}})
			if err == nil {
				s.Abort()
			}
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := ReadAttachment.On(ctx, c, shard.AttachmentRange{Copy: name, ID: "d"})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		},
		"drop att": func(ctx context.Context) error {
			_, err := DropAttachments.On(ctx, c, DropAttachmentsRequest{name, "d", [][16]byte{{1}}})
			return err
		},
		"info": func(ctx context.Context) error {
			_, err := Info.On(ctx, c, name)
			return err
		},
		"partition": func(ctx context.Context) error {
			_, err := Partition.On(ctx, c, PartitionRequest{name, "p"})
			return err
		},
		"all docs": func(ctx context.Context) error {
			s, err := AllDocs.On(ctx, c, shard.DocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"local docs": func(ctx context.Context) error {
			s, err := LocalDocs.On(ctx, c, shard.LocalDocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"changes": func(ctx context.Context) error {
			s, err := Changes.On(ctx, c, shard.ChangesRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"purges": func(ctx context.Context) error {
			_, err := Purges.On(ctx, c, PurgesRequest{Copy: name})
			return err
		},
		"position": func(ctx context.Context) error {
			_, err := Position.On(ctx, c, name)
			return err
		},
		"watch": func(ctx context.Context) error {
			w, err := Watch.On(ctx, c, WatchRequest{name, make(chan struct{}, 1)})
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"compact": func(ctx context.Context) error {
			_, err := Compact.On(ctx, c, CompactRequest{Copy: name, DB: "db"})
			return err
		},
	}
}

// writes are the calls that an incomplete copy takes: nothing is read or
// decided.
func writes() map[string]bool {
	return map[string]bool{"follow": true, "purge": true, "put": true, "drop att": true, "compact": true}
}

// expected is which calls are done, and how the others are refused.
type expected struct {
	what    string
	passes  func(call string) bool
	refusal fault.Kind
}

// expect fails unless every call of some is done that passes, and all others are refused
// with that kind of error.
func expect(ctx context.Context, t *testing.T, calls map[string]func(ctx context.Context) error, c expected) {
	t.Helper()
	what, passes, refusal := c.what, c.passes, c.refusal
	for call, f := range calls {
		err := f(ctx)
		if passes(call) && err != nil {
			t.Errorf("%s: %s is refused: %v", what, call, err)
		}
		if !passes(call) && !fault.Is(err, refusal) {
			t.Errorf("%s: %s gives %v", what, call, err)
		}
	}
}

func anyCall(string) bool { return true }
func noCall(string) bool  { return false }

func TestLocal(t *testing.T) {
	const name = testCopy
	local := newLocal(t)
	if err := local.held.Shards.Copies.Drop(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := local.held.Shards.Copies.Create(t.Context(), name, shard.CreateOptions{ID: 3}); err != nil {
		t.Fatal(err)
	}
	held := local.held
	place := ring.Replica{Copy: ring.Copy{ID: 3, State: ring.StateJoining}, Generation: 7}
	held.Place = func(string) ring.Replica { return place }
	g := NewLocal(held)
	maintenance := false
	gone := false
	peers := g.ForPeers(func() bool { return maintenance }, func(copyName string) bool { return gone && copyName == name })
	ctx, to := t.Context(), wire.Addressee{Copy: 3, Generation: 7}
	check := func(what string, g *Local, ctx context.Context, passes func(call string) bool) {
		t.Helper()
		expect(ctx, t, calls(Copy{At: g, To: to}, name), expected{what, passes, fault.Unavailable})
	}
	some := func(call string) bool { return writes()[call] }
	check("joining, here", g, ctx, some)
	check("joining, for peers", peers, ctx, some)
	check("joining, for repair", peers, wire.ForRepair(ctx), anyCall)
	place.State = ring.StateFull
	check("full", peers, ctx, anyCall)
	maintenance = true
	check("maintenance, here", g, ctx, anyCall)
	check("maintenance, for peers", peers, ctx, noCall)
	check("maintenance, for repair", peers, wire.ForRepair(ctx), anyCall)
	const reason = "Nodes are unable to service this request due to overloading or maintenance mode."
	if _, err := Open.On(ctx, Copy{At: peers, To: to}, shard.OpenRequest{Copy: name, ID: "x"}); err == nil || err.Error() != reason {
		t.Errorf("maintenance: the client is told %v", err)
	}
	maintenance, gone = false, true
	check("deleted, here", g, ctx, anyCall)
	for _, ctx := range []context.Context{ctx, wire.ForRepair(ctx)} {
		for call, f := range calls(Copy{At: peers, To: to}, name) {
			switch err := f(ctx); call {
			case "local", "read": // their calls take this answer for that of a copy
			default:
				if !fault.Is(err, fault.NoCopy) {
					t.Errorf("deleted: %s gives %v", call, err)
				}
			}
		}
	}
	if _, err := Drop.On(ctx, Copy{At: peers, To: to}, name); err != nil {
		t.Errorf("a copy of a deleted database is not dropped: %v", err)
	}
}

func BenchmarkCheckIdle(b *testing.B) {
	g := newLocal(b)
	g.held.Place = func(string) ring.Replica { return ring.Replica{Copy: ring.Copy{ID: 3}, Generation: 7} }
	to, d := wire.Addressee{Copy: 3, Generation: 7}, demand{counted: true}
	for b.Loop() {
		if err := g.check(b.Context(), testCopy, to, d); err != nil {
			b.Fatal(err)
		}
	}
}
