package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"divan/cluster/meta"
)

func TestDecideBootstrap(t *testing.T) {
	at := time.Unix(1, 0)
	none := heard{at: at}
	member := func(uuid string) heard { return heard{at: at, seedAnswer: seedAnswer{Member: true, UUID: uuid}} }
	silent := heard{at: at, err: errors.New("down")}
	abc := []string{"a", "b", "c"}
	for _, tc := range []struct {
		name, self, uuid string
		seeds            []string
		answers          map[string]heard
		want             verdict
	}{
		{"all say none to the first", "a", "", abc, map[string]heard{"b": none, "c": none}, verdict{found: true}},
		{"all say none to another", "b", "", abc, map[string]heard{"a": none, "c": none}, verdict{}},
		{"one is silent", "a", "", abc, map[string]heard{"b": none, "c": silent}, verdict{}},
		{"one was not asked", "a", "", abc, map[string]heard{"b": none}, verdict{}},
		{"one is a member", "a", "", abc, map[string]heard{"b": silent, "c": member("u")}, verdict{join: []string{"c"}}},
		{"two are members", "b", "", abc, map[string]heard{"a": member("u"), "c": member("u")}, verdict{join: []string{"a", "c"}}},
		{"two clusters", "b", "", abc, map[string]heard{"a": member("u"), "c": member("v")}, verdict{trouble: "c belongs to cluster v, which is not u"}},
		{"a list of one", "a", "", []string{"a"}, nil, verdict{found: true}},
		{"not in the list", "x", "", abc, map[string]heard{"a": none, "b": none, "c": none}, verdict{}},
		{"not in the list, joins", "x", "", abc, map[string]heard{"a": member("u"), "b": none}, verdict{join: []string{"a"}}},
		{"lost its metadata", "a", "u", abc, map[string]heard{"b": none, "c": none}, verdict{}},
		{"lost its metadata, rejoins", "a", "u", abc, map[string]heard{"b": member("u")}, verdict{join: []string{"b"}}},
		{"lost its metadata, strangers", "a", "u", abc, map[string]heard{"b": member("v")}, verdict{trouble: "b belongs to cluster v, which is not u"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := decideBootstrap(tc.self, tc.uuid, tc.seeds, tc.answers); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// No node founds a cluster while a node of the seed list belongs to one, no matter what
// they hear of each other while they start, and which of them loses its disk.
func TestOneClusterIsFounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		seeds := names[:rapid.IntRange(1, 4).Draw(t, "seeds")]
		cluster := map[string]string{} // node → uuid
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			self := rapid.SampledFrom(names).Draw(t, "self")
			if rapid.IntRange(0, 9).Draw(t, "loses its disk") == 0 {
				delete(cluster, self)
			}
			if cluster[self] != "" {
				continue
			}
			answers := map[string]heard{}
			for _, s := range seeds {
				switch {
				case s == self:
				case rapid.Bool().Draw(t, "reaches "+s):
					answers[s] = heard{at: time.Unix(1, 0), seedAnswer: seedAnswer{Member: cluster[s] != "", UUID: cluster[s]}}
				default:
					answers[s] = heard{at: time.Unix(1, 0), err: errors.New("down")}
				}
			}
			switch v := decideBootstrap(self, "", seeds, answers); {
			case v.found:
				if slices.ContainsFunc(seeds, func(s string) bool { return cluster[s] != "" }) {
					t.Fatalf("%s founds a cluster beside %v", self, cluster)
				}
				cluster[self] = fmt.Sprint("u", step)
			case len(v.join) > 0:
				cluster[self] = cluster[v.join[0]]
			}
		}
	})
}

// TestBootstrapperAsks lets the seeds answer one by one.
func TestBootstrapperAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, err := openIdentity(t.Context(), vfs.NewMem(), "")
		if err != nil {
			t.Fatal(err)
		}
		f := newBootstrapper("b@b", []string{"a@a", "b@b:7", "c@c:8", "b@b"}, id, zap.NewNop())
		start := time.Now()
		f.ask = func(ctx context.Context, node, service string, _ []byte) ([]byte, error) {
			switch {
			case service != serviceSeed:
				return nil, errors.New("what?")
			case node == "c@c":
				<-ctx.Done() // it hangs
				return nil, ctx.Err()
			case time.Since(start) < 10*time.Second:
				return json.Marshal(seedAnswer{})
			default:
				return json.Marshal(seedAnswer{Member: true, UUID: "u"})
			}
		}
		got, err := f.found(t.Context())
		if err != nil || !reflect.DeepEqual(got, meta.BootstrapPlan{Seeds: []string{"a@a"}}) {
			t.Errorf("%+v %v", got, err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 16*time.Second {
			t.Errorf("after %v", took)
		}
		select {
		case <-f.undecided:
		default:
			t.Error("that there is no decision yet is not told")
		}
		f.occupied = func(_ context.Context, address string) bool { return address == "b:1" }
		for address, refused := range map[string]bool{"b:1": true, "b:2": false} {
			f.mu.answers["a@a"] = heard{seedAnswer: seedAnswer{Nodes: map[string]string{"b@b": address}}}
			if v := f.checkName(t.Context(), verdict{join: []string{"a@a"}}); refused != (v.trouble != "") || refused != (v.join == nil) {
				t.Errorf("a node of the same name at %s: %+v", address, v)
			}
		}
		f.mu.answers["a@a"] = heard{at: time.Now()}
		s := f.status(false)
		if s.Joined || len(s.Seeds) != 2 || s.Seeds[0].Answer != "ok" || s.Seeds[1].Answer == "ok" || s.Seeds[1].Name != "c@c" {
			t.Errorf("%+v", s)
		}
	})
}

// A node tells others that it belongs to no cluster only while it looks for one.
func TestWhoIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, err := openIdentity(t.Context(), vfs.NewMem(), "")
		if err != nil {
			t.Fatal(err)
		}
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		seeds := []string{"a@a", "b@b"}
		started := newBootstrapper("b@b", seeds, id, zap.NewNop())
		if started.free(soon()) {
			t.Error("it does not know yet whether it has metadata")
		}
		started.begin()
		if started.free(soon()) {
			t.Error("it has metadata")
		}
		f := newBootstrapper("b@b", seeds, id, zap.NewNop())
		f.occupied = func(context.Context, string) bool { return false }
		f.ask = func(ctx context.Context, _, _ string, _ []byte) ([]byte, error) {
			if !f.free(ctx) {
				t.Error("it looks for a cluster")
			}
			return json.Marshal(seedAnswer{Member: true, UUID: "u"})
		}
		if _, err := f.found(t.Context()); err != nil || f.free(soon()) {
			t.Errorf("it is about to join: %v", err)
		}
		if err := id.update(t.Context(), func(i *identity) { i.UUID = "u" }); err != nil {
			t.Fatal(err)
		}
		f = newBootstrapper("b@b", seeds, id, zap.NewNop())
		f.occupied = func(context.Context, string) bool { return false }
		f.ask = func(ctx context.Context, _, _ string, _ []byte) ([]byte, error) {
			if f.free(ctx) {
				t.Error("it belongs to u and has lost its metadata")
			}
			return json.Marshal(seedAnswer{Member: true, UUID: "u"})
		}
		if _, err := f.found(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that was invited, or lost its metadata, joins those it knows.
func TestBootstrapperKnowsMembers(t *testing.T) {
	id, err := openIdentity(t.Context(), vfs.NewMem(), "")
	if err != nil {
		t.Fatal(err)
	}
	f := newBootstrapper("b@b", nil, id, zap.NewNop())
	if got, err := f.found(t.Context()); err != nil || !got.New {
		t.Errorf("nobody: %+v %v", got, err)
	}
	if !f.status(false).Joined {
		t.Error("it has nobody to wait for")
	}
	if err := id.update(t.Context(), func(i *identity) {
		i.UUID, i.Nodes = "u", map[string]string{"b@b": "b:1", "c@c": "c:1", "a@a": "a:1"}
	}); err != nil {
		t.Fatal(err)
	}
	got, err := f.found(t.Context())
	if err != nil || !reflect.DeepEqual(got, meta.BootstrapPlan{Seeds: []string{"a@a", "c@c"}}) {
		t.Errorf("%+v %v", got, err)
	}
	if f.status(false).Joined || !f.status(true).Joined {
		t.Error("it has joined before the others have taken it in, or has not afterwards")
	}
}
