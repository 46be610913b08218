package repair

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
)

func TestCheckpointText(t *testing.T) {
	c := Checkpoint{Source: [16]byte{1, 2}, Target: [16]byte{3}, History: []Entry{{9, 7}, {4, 7}, {1, 0}}}
	got, err := DecodeCheckpoint(c.encode())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(c) {
		t.Errorf("%+v, %v", got, err)
	}
	u := "01020000000000000000000000000000"
	for _, bad := range []string{
		`{}`, `[]`, `x`, `{"source_uuid":"zz","target_uuid":"` + u + `","history":[]}`,
		`{"source_uuid":"` + u + `00","target_uuid":"` + u + `","history":[]}`,
		`{"source_uuid":"` + u + `","target_uuid":"` + u + `","history":[[1,1],[1,1]]}`,
		`{"source_uuid":"` + u + `","target_uuid":"` + u + `","history":[[3,1],[2,2]]}`,
	} {
		if _, err := DecodeCheckpoint([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if CheckpointID(Prefix{1}, Prefix{2}) == CheckpointID(Prefix{2}, Prefix{1}) {
		t.Error("both directions have one checkpoint")
	}
}

func TestShared(t *testing.T) {
	a, b := [16]byte{1}, [16]byte{2}
	at := func(h ...Entry) Checkpoint { return Checkpoint{Source: a, Target: b, History: h} }
	e := func(s, t uint64) Entry { return Entry{s, t} }
	full := at(e(9, 8), e(5, 4), e(2, 2))
	for _, c := range []struct {
		name       string
		own, other Checkpoint
		src, tgt   uint64
		want       uint64
	}{
		{"equal", full, full, 10, 10, 9},
		{"none", Checkpoint{}, full, 10, 10, 0},
		{"source crashed before its own", at(e(5, 4), e(2, 2)), full, 10, 10, 5},
		{"target restored from a backup", full, at(e(5, 4), e(2, 2)), 10, 6, 5},
		{"target behind what both say", full, full, 10, 7, 5},
		{"source behind", full, full, 4, 10, 2},
		{"diverged", at(e(9, 8)), at(e(9, 7)), 10, 10, 0},
		{"another copy", full, Checkpoint{Source: a, Target: a, History: full.History}, 10, 10, 0},
	} {
		got := shared(c.own, c.other, position{a, c.src}, position{b, c.tgt})
		if since(got) != c.want {
			t.Errorf("%s: from %d on, want %d", c.name, since(got), c.want)
		}
	}
}

// However a history grows, it stays short, ordered, and holds an entry for
// about every distance.
func TestHistoryIsThinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h []Entry
		var all []Entry
		e := Entry{}
		step := uint64(rapid.IntRange(1, 1000).Draw(t, "step"))
		for range rapid.IntRange(1, 2000).Draw(t, "entries") {
			e.Source += step
			e.Target += step / 2
			h = extend(h, e)
			all = append(all, e)
		}
		if len(h) > maxHistory || len(h) > 2*14+22 {
			t.Fatalf("%d entries", len(h))
		}
		if _, err := DecodeCheckpoint((&Checkpoint{History: h}).encode()); err != nil {
			t.Fatal(err)
		}
		for _, old := range all {
			d := h[0].Source - old.Source
			near := slices.ContainsFunc(h, func(k Entry) bool {
				have := h[0].Source - k.Source
				return have >= d && have <= 4*d
			})
			if !near && d <= h[0].Source/4 {
				t.Fatalf("nothing is kept for a distance of %d: %v", d, h)
			}
		}
	})
}

// TestResumeMissesNothing: for any history of two copies, a client that has seen one of them up to
// some point and goes on in the other gets to know the state of every document.
func TestResumeMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		nodes := []*node{newNode(t, "a@x"), newNode(t, "b@x")}
		for _, n := range nodes {
			defer n.stop()
		}
		var readers []*reader
		heads := []map[string]doc.Rev{{}, {}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at := rapid.IntRange(0, 1).Draw(t, "node")
			n, to := nodes[at], nodes[1-at]
			switch rapid.SampledFrom([]string{"put", "put", "put", "sync", "sync", "read", "lose"}).Draw(t, "step") {
			case "put":
				id := rapid.SampledFrom([]string{"p", "q", "r", "s"}).Draw(t, "id")
				d, err := n.Open(ctx, shard.OpenRequest{Copy: copyName, ID: id, AllowDeleted: true})
				parent := doc.Rev{}
				if err == nil && !d.Deleted {
					parent = d.Rev
				}
				heads[at][id] = n.put(id, parent, fmt.Sprintf(`{"x":%d}`, rapid.IntRange(0, 9).Draw(t, "x")))
			case "sync":
				n.sync(to)
			case "read":
				r := &reader{copy: n.info().UUID, state: map[string]string{}}
				r.follow(t, n, 0, rapid.IntRange(0, 6).Draw(t, "rows"))
				readers = append(readers, r)
			case "lose":
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					to.sync(n)
					n.sync(to)
					n.lose(shard.CreateOptions{})
				}
			}
		}
		nodes[0].sync(nodes[1])
		nodes[1].sync(nodes[0])
		agree(t, nodes...)
		for _, r := range readers {
			for _, n := range nodes {
				again := r.clone()
				again.resume(t, n)
				for _, id := range []string{"p", "q", "r", "s"} {
					if want := leavesOf(t, n, id); again.state[id] != want && want != "" {
						t.Fatalf("a client of copy %x at %d that goes on at %s believes that %s is %q, and it is %q",
							r.copy[:2], r.seq, n.name, id, again.state[id], want)
					}
				}
			}
		}
	})
}

// reader is a client of a changes feed: which copy it read, up to where, and
// what it believes.
type reader struct {
	copy  [16]byte
	seq   uint64
	state map[string]string
}

func (r *reader) clone() *reader {
	c := &reader{copy: r.copy, seq: r.seq, state: map[string]string{}}
	for k, v := range r.state {
		c.state[k] = v
	}
	return c
}

func (r *reader) follow(t tester, n *node, since uint64, rows int) {
	s, err := n.Changes(context.Background(), shard.ChangesRequest{Copy: copyName, Since: since, AllLeaves: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r.copy, r.seq = s.UUID, since
	var b shard.ChangeBatch
	if _, err := s.Next(&b); err != nil {
		t.Fatal(err)
	}
	for i, c := range b.Rows {
		if i == rows {
			return
		}
		r.seq = c.Seq
		r.state[c.ID] = fmt.Sprint(c.Leaves)
	}
}

func (r *reader) resume(t tester, n *node) {
	at := n.info()
	from := r.seq
	if r.copy != at.UUID {
		var err error
		from, err = ResumePoint(context.Background(), replica.Copy{At: n.copies()}, Copy{Name: copyName, UUID: at.UUID, Seq: at.Seq}, PrefixOf(r.copy), r.seq)
		if err != nil {
			t.Fatal(err)
		}
	}
	r.follow(t, n, from, 1000)
}

func leavesOf(t tester, n *node, id string) string {
	res, err := n.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: copyName, ID: id, All: true})
	if err != nil {
		t.Fatal(err)
	}
	var leaves []doc.Rev
	for _, r := range res {
		leaves = append(leaves, r.Rev)
	}
	if leaves == nil {
		return ""
	}
	return fmt.Sprint(leaves)
}
