package replica

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestOtherCopyDoesNotAnswer: any request that is meant for another copy than the one that lies
// under the name is refused, here and from another node.
func TestOtherCopyDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p := answering(t)
		admitted(t, local, p)
	})
}

// answering returns copies, and the same as another node sees them, which answers.
func answering(t *testing.T) (*Local, Remote) {
	t.Helper()
	local, p, _ := remoteCopies(t)
	if _, err := Info.On(t.Context(), Copy{At: p}, testCopy); fault.Is(err, fault.NodeDown) {
		t.Fatal(err)
	}
	return local, p
}

// asThird makes the copy for tests anew, as the one with id 3.
func asThird(t *testing.T, local *Local) *Local {
	t.Helper()
	copies := local.held.Shards.Copies
	if err := errors.Join(copies.Drop(t.Context(), testCopy), copies.Create(t.Context(), testCopy, shard.CreateOptions{ID: 3})); err != nil {
		t.Fatal(err)
	}
	return local
}

func admitted(t *testing.T, local *Local, p Remote) {
	t.Helper()
	const named, absent = "shards/00000000-ffffffff/named.1763600000", "shards/00000000-ffffffff/none.1763600000"
	if err := local.held.Shards.Copies.Create(t.Context(), named, shard.CreateOptions{ID: 5}); err != nil {
		t.Fatal(err)
	}
	for at, copies := range map[string]Copies{"here": local, "elsewhere": p} {
		for _, tc := range []struct {
			name  string
			id    uint64       // that is asked for
			place ring.Replica // in the map; of generation 0: the map is not asked
			ok    bool
		}{
			{named, 5, ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, true},
			{named, 5, ring.Replica{}, true},
			{named, 0, ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, false},
			{named, 0, ring.Replica{}, false},
			{named, 4, ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, false},
			{named, 4, ring.Replica{}, false},
			{named, 5, ring.Replica{Copy: ring.Copy{ID: 6}, Generation: 7}, false},
			{named, 6, ring.Replica{Copy: ring.Copy{ID: 6}, Generation: 7}, false}, // an earlier copy has left the directory
			{absent, 1, ring.Replica{Copy: ring.Copy{ID: 1}, Generation: 7}, false},
			{absent, 1, ring.Replica{}, false},
		} {
			local.held.Place = nil
			if tc.place.Generation != 0 {
				local.held.Place = func(string) ring.Replica { return tc.place }
			}
			c := Copy{At: copies, To: wire.Addressee{Copy: tc.id, Generation: 7}}
			for what, do := range everything(c, tc.name) {
				err := do(t.Context())
				if refused := fault.Is(err, fault.NoCopy) && fault.Reason(err) == "no_db_file"; refused == tc.ok {
					t.Errorf("%s: %s of copy %d of %s, %+v: %v", at, what, tc.id, tc.name, tc.place, err)
				}
			}
		}
	}
}

// everything is one call of each kind on a copy that reads or writes it. A watch only
// wakes who reads it afterwards.
func everything(c Copy, name string) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"decide": func(ctx context.Context) error {
			_, err := Decide.On(ctx, c, shard.DecideRequest{Copy: name, NewEdits: true, Edits: []shard.Edit{{ID: "d", Body: []byte("{}")}}})
			return err
		},
		"follow": func(ctx context.Context) error {
			path := doc.Path{Start: 1, IDs: []string{"967a00dff5e02add41819138abb3284d"}}
			_, err := Follow.On(ctx, c, shard.FollowRequest{Copy: name, Edits: []shard.Edit{{ID: "f", Path: path, Body: []byte("{}")}}})
			return err
		},
		"open": func(ctx context.Context) error {
			_, err := Open.On(ctx, c, shard.OpenRequest{Copy: name, ID: "d"})
			return err
		},
		"list": func(ctx context.Context) error {
			s, err := AllDocs.On(ctx, c, shard.DocsRequest{Copy: name})
			if err == nil {
				s.Close()
			}
			return err
		},
		"upload": func(ctx context.Context) error {
			s, err := PutAttachment.On(ctx, c, PutAttachmentRequest{name, "d", [16]byte{1}})
			if err == nil {
				s.Abort()
			}
			return err
		},
		"download": func(ctx context.Context) error {
			_, err := ReadAttachment.On(ctx, c, shard.AttachmentRange{Copy: name, ID: "d", Key: [16]byte{2}})
			return err
		},
	}
}

// TestJudge: what is refused by the map.
func TestJudge(t *testing.T) {
	full, joining := ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, ring.Replica{Copy: ring.Copy{ID: 5, State: ring.StateJoining}, Generation: 7}
	for _, tc := range []struct {
		name  string
		place ring.Replica
		to    wire.Addressee
		read  [2]fault.Kind // not counted, counted; 0: not refused
		write [2]fault.Kind // for a copy that may join
	}{
		{name: "by the same map", place: full, to: wire.Addressee{Copy: 5, Generation: 7}},
		{
			name: "by the same map, another copy", place: full, to: wire.Addressee{Copy: 4, Generation: 7},
			read: [2]fault.Kind{fault.NoCopy, fault.NoCopy}, write: [2]fault.Kind{fault.NoCopy, fault.NoCopy},
		},
		{
			name: "by the same map, one that joins", place: joining, to: wire.Addressee{Copy: 5, Generation: 7},
			read: [2]fault.Kind{fault.Unavailable, fault.Unavailable},
		},
		{
			name: "by the same map, none is here", place: ring.Replica{Generation: 7}, to: wire.Addressee{Copy: 5, Generation: 7},
			read: [2]fault.Kind{fault.NoCopy, fault.NoCopy}, write: [2]fault.Kind{fault.NoCopy, fault.NoCopy},
		},
		{
			name: "by an older map", place: full, to: wire.Addressee{Copy: 5, Generation: 6},
			read: [2]fault.Kind{0, fault.StaleMap}, write: [2]fault.Kind{0, fault.StaleMap},
		},
		{
			name: "by an older map, another copy", place: full, to: wire.Addressee{Copy: 4, Generation: 6},
			read: [2]fault.Kind{fault.StaleMap, fault.StaleMap}, write: [2]fault.Kind{fault.StaleMap, fault.StaleMap},
		},
		{
			name: "by an older map, one that joins", place: joining, to: wire.Addressee{Copy: 5, Generation: 6},
			read: [2]fault.Kind{fault.StaleMap, fault.StaleMap}, write: [2]fault.Kind{0, fault.StaleMap},
		},
		{
			name: "by an older map, none is here any more", place: ring.Replica{Generation: 7}, to: wire.Addressee{Copy: 5, Generation: 6},
			read: [2]fault.Kind{fault.StaleMap, fault.StaleMap}, write: [2]fault.Kind{fault.StaleMap, fault.StaleMap},
		},
		{name: "by a newer map", place: full, to: wire.Addressee{Copy: 5, Generation: 8}},
		{
			name: "by a newer map, another copy", place: full, to: wire.Addressee{Copy: 6, Generation: 8},
			read: [2]fault.Kind{fault.NoCopy, fault.NoCopy}, write: [2]fault.Kind{fault.NoCopy, fault.NoCopy},
		},
		{
			name: "by a newer map, one that joins here", place: joining, to: wire.Addressee{Copy: 5, Generation: 8},
			read: [2]fault.Kind{fault.Unavailable, fault.Unavailable},
		},
		{
			name: "the database is not known", to: wire.Addressee{Copy: 5, Generation: 8},
			read: [2]fault.Kind{fault.NoCopy, fault.NoCopy}, write: [2]fault.Kind{fault.NoCopy, fault.NoCopy},
		},
	} {
		for counted, is := range []bool{false, true} {
			for needs, want := range map[State]fault.Kind{Complete: tc.read[counted], Present: tc.write[counted]} {
				err := judge(&tc.place, tc.to, demand{needs: needs, counted: is})
				if (err == nil) != (want == 0) || err != nil && fault.KindOf(err) != want {
					t.Errorf("%s: counted %t, needs %d: %v", tc.name, is, needs, err)
				}
				if newer := fault.NewerMap(err); want == fault.StaleMap && newer != tc.place.Generation {
					t.Errorf("%s: it tells of the map %d", tc.name, newer)
				}
			}
		}
	}
}

// counted are the calls whose answers coordinators count.
func counted(call string) bool {
	switch call {
	case "follow", "decide", "replicate", "open", "open_revs", "local", "purge":
		return true
	default:
		return false
	}
}

// TestOlderMap: which calls go by the map, here and from another node; the refusal tells of
// the newer one.
func TestOlderMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p := answering(t)
		asThird(t, local)
		local.held.Place = func(string) ring.Replica { return ring.Replica{Copy: ring.Copy{ID: 3}, Generation: 7} }
		for at, copies := range map[string]Copies{"here": local, "elsewhere": p} {
			to := func(id, generation uint64) map[string]func(ctx context.Context) error {
				c := Copy{At: copies, To: wire.Addressee{Copy: id, Generation: generation}}
				of := calls(c, testCopy)
				if at == "elsewhere" {
					delete(of, "watch") // it is not refused, it ends
				}
				of["open_revs_many"] = func(ctx context.Context) error {
					_, err := OpenRevsMany.On(ctx, c, OpenRevsManyRequest{Copy: testCopy})
					return err
				}
				return of
			}
			expect(t.Context(), t, to(3, 7), expected{at + ", by the same map", anyCall, fault.StaleMap})
			expect(t.Context(), t, to(3, 6), expected{at + ", by an older one", func(call string) bool { return !counted(call) && call != "open_revs_many" }, fault.StaleMap})
			expect(t.Context(), t, to(2, 6), expected{at + ", by an older one, another copy", noCall, fault.StaleMap})
			_, err := Open.On(t.Context(), Copy{At: copies, To: wire.Addressee{Copy: 3, Generation: 6}}, shard.OpenRequest{Copy: testCopy, ID: "d"})
			if newer := fault.NewerMap(err); newer != 7 {
				t.Errorf("%s: it tells of the map %d", at, newer)
			}
		}
		local.held.Place = func(string) ring.Replica {
			return ring.Replica{Copy: ring.Copy{ID: 3, State: ring.StateJoining}, Generation: 7}
		}
		expect(t.Context(), t, calls(Copy{At: local, To: wire.Addressee{Copy: 3, Generation: 6}}, testCopy), expected{"by an older map in which it was full", func(call string) bool { return writes()[call] && !counted(call) }, fault.StaleMap})
	})
}

// TestRepairGoesByDirectories: what the map says does not matter to repair, only which
// copy lies there.
func TestRepairGoesByDirectories(t *testing.T) {
	local := newLocal(t)
	const name = "shards/00000000-ffffffff/named.1763600000"
	if err := local.held.Shards.Copies.Create(t.Context(), name, shard.CreateOptions{ID: 5}); err != nil {
		t.Fatal(err)
	}
	ctx := wire.ForRepair(t.Context())
	for _, place := range []ring.Replica{
		{Copy: ring.Copy{ID: 5}, Generation: 7},
		{Copy: ring.Copy{ID: 5}, Generation: 8},
		{Copy: ring.Copy{ID: 5, State: ring.StateJoining}, Generation: 8},
		{Copy: ring.Copy{ID: 6}, Generation: 8},
		{Copy: ring.Copy{ID: 4}, Generation: 6},
		{Generation: 8},
		{},
	} {
		local.held.Place = func(string) ring.Replica { return place }
		expect(ctx, t, calls(Copy{At: local, To: wire.Addressee{Copy: 5, Generation: 7}}, name), expected{"the copy that is there", anyCall, fault.NoCopy})
		for call, f := range calls(Copy{At: local, To: wire.Addressee{Copy: 6, Generation: 8}}, name) {
			if call != "watch" && !fault.Is(f(ctx), fault.NoCopy) {
				t.Errorf("another one, %+v: %s gives %v", place, call, f(ctx))
			}
		}
	}
}

// TestDropIsNotJudged: a copy whose database is gone is dropped, regardless of the map.
func TestDropIsNotJudged(t *testing.T) {
	local := newLocal(t)
	local.held.Place = func(string) ring.Replica {
		t.Error("the map is asked")
		return ring.Replica{Copy: ring.Copy{ID: 4}, Generation: 9}
	}
	local.held.Heard = func(context.Context, uint64) error { return errors.New("it waits") }
	if _, err := Drop.On(t.Context(), Copy{At: local, To: wire.Addressee{Copy: 3, Generation: 12}}, testCopy); err != nil {
		t.Error(err)
	}
	if local.Has(testCopy) {
		t.Error("it is still there")
	}
}

// TestNewerMapIsHeardOf: a call that was made by a newer map waits until this node has that,
// and goes by it then. Watches do not wait.
func TestNewerMapIsHeardOf(t *testing.T) {
	ctx := t.Context()
	to := wire.Addressee{Copy: 3, Generation: 9}
	for _, tc := range []struct {
		name   string
		heard  ring.Replica // the map that is heard of
		err    error
		passes bool
		kind   fault.Kind
	}{
		{name: "that very one", heard: ring.Replica{Copy: ring.Copy{ID: 3}, Generation: 9}, passes: true},
		{name: "one that is still newer", heard: ring.Replica{Copy: ring.Copy{ID: 3}, Generation: 10}, kind: fault.StaleMap},
		{name: "one in which it joins", heard: ring.Replica{Copy: ring.Copy{ID: 3, State: ring.StateJoining}, Generation: 9}, kind: fault.Unavailable},
		{name: "one with another copy here", heard: ring.Replica{Copy: ring.Copy{ID: 4}, Generation: 9}, kind: fault.NoCopy},
		{name: "none", err: fault.New(fault.Unavailable, "not yet"), kind: fault.Unavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			local := asThird(t, newLocal(t)) //nolint:contextcheck // the test's own ends with it
			place, waits := ring.Replica{Copy: ring.Copy{ID: 2}, Generation: 8}, 0
			local.held.Place = func(string) ring.Replica { return place }
			local.held.Heard = func(_ context.Context, generation uint64) error {
				if waits++; generation != 9 {
					t.Errorf("it waits for %d", generation)
				}
				if tc.err == nil {
					place = tc.heard
				}
				return tc.err
			}
			c := Copy{At: local, To: to}
			if _, err := Watch.On(ctx, c, WatchRequest{testCopy, make(chan struct{}, 1)}); !fault.Is(err, fault.NoCopy) || waits != 0 {
				t.Errorf("a watch: %v, %d waits", err, waits)
			}
			_, err := Open.On(ctx, c, shard.OpenRequest{Copy: testCopy, ID: "d"})
			if fault.Is(err, fault.NotFound) {
				err = nil // the answer of the copy
			}
			if (err == nil) != tc.passes || !tc.passes && fault.KindOf(err) != tc.kind || waits != 1 {
				t.Errorf("%v, %d waits", err, waits)
			}
			place, waits = ring.Replica{Copy: ring.Copy{ID: 3}, Generation: 9}, 0
			if _, err := Info.On(ctx, c, testCopy); err != nil || waits != 0 {
				t.Errorf("by the map that is here: %v, %d waits", err, waits)
			}
		})
	}
}

// TestCopyIsMade: a copy that the map has here and that is not there yet is made for the
// call that is meant for it, and only for one that is let in.
func TestCopyIsMade(t *testing.T) {
	const name = "shards/00000000-ffffffff/new.1763600000"
	for _, tc := range []struct {
		what   string
		to     wire.Addressee
		place  ring.Replica
		id     uint64 // that is made; 0: none
		err    error
		made   bool
		passes bool
	}{
		{what: "it", to: wire.Addressee{Copy: 5, Generation: 7}, place: ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, id: 5, made: true, passes: true},
		{what: "another one", to: wire.Addressee{Copy: 5, Generation: 7}, place: ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, id: 6, made: true},
		{what: "none", to: wire.Addressee{Copy: 5, Generation: 7}, place: ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, err: fault.New(fault.NoCopy, "gone"), made: true},
		{what: "nothing for a copy that is not here", to: wire.Addressee{Copy: 5, Generation: 7}, place: ring.Replica{Copy: ring.Copy{ID: 6}, Generation: 7}, id: 6},
		{what: "nothing for an older map", to: wire.Addressee{Copy: 5, Generation: 6}, place: ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, id: 5},
		{what: "nothing for none", place: ring.Replica{Copy: ring.Copy{ID: 5}, Generation: 7}, id: 5},
	} {
		t.Run(tc.what, func(t *testing.T) {
			local := newLocal(t)
			made := false
			local.held.Place = func(string) ring.Replica { return tc.place }
			local.held.Make = func(ctx context.Context, name string) error {
				made = true
				if tc.id == 0 {
					return tc.err
				}
				return local.held.Shards.Copies.Create(ctx, name, shard.CreateOptions{ID: tc.id})
			}
			_, err := LocalGet.On(t.Context(), Copy{At: local, To: tc.to}, LocalGetRequest{name, "_local/x"})
			answered := fault.Is(err, fault.NotFound) && fault.Reason(err) == "missing"
			if answered != tc.passes || made != tc.made || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("made: %t, %v", made, err)
			}
		})
	}
}

// TestWritesAreFenced: changes that coordinators count are under way, for the fence, from
// before the map is looked at until they are over, also those that are refused.
func TestWritesAreFenced(t *testing.T) {
	local := asThird(t, newLocal(t))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	fence := &local.held.Shards.Writes
	for _, place := range []ring.Replica{{Copy: ring.Copy{ID: 3}, Generation: 7}, {Copy: ring.Copy{ID: 4}, Generation: 8}} {
		for call, f := range calls(Copy{At: local, To: wire.Addressee{Copy: 3, Generation: 7}}, testCopy) {
			underWay := false
			local.held.Place = func(string) ring.Replica {
				underWay = fence.Drain(over) != nil
				return place
			}
			_ = f(t.Context()) // the other tests are about whether it is refused
			writes := call == "follow" || call == "decide" || call == "replicate" || call == "purge"
			if underWay != writes {
				t.Errorf("%s is under way: %t", call, underWay)
			}
			if err := fence.Drain(over); err != nil {
				t.Errorf("%s is under way when it is over", call)
			}
		}
	}
}
