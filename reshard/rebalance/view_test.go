package rebalance

import (
	"encoding/json"
	"slices"
	"testing"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/placer"
	"divan/shard/ring"
)

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func members(names ...string) []meta.Node {
	var out []meta.Node
	for _, n := range names {
		out = append(out, meta.Node{Name: n})
	}
	return out
}

// planOf plans for databases.
func planOf(f *facts, leavingOnly bool, dbs ...*meta.Database) *Plan {
	v := newView(setOf(dbs...), f)
	return v.planned(placer.Plan(&v.cluster, placer.Options{LeavingOnly: leavingOnly}), f)
}

// What is under way is seen where it will be, and nothing of it moves.
func TestViewOfWhatIsUnderWay(t *testing.T) {
	db := base(t, "db", "a", "b")
	s := &db.Shards[0]
	s.Copies[0].State = ring.StateLeaving // moved to c
	s.Copies = append(s.Copies,
		ring.Copy{ID: 50, Node: "c", State: ring.StateFull, Instead: "a"},
		ring.Copy{ID: 51, Node: "d", State: ring.StateCopying},
		ring.Copy{ID: 52, Node: "e", State: ring.StateJoining, Instead: "b"})
	f := &facts{members: members("a", "b", "c", "d", "e"), sizes: sizes{{db.ID, s.Copies[1].ID}: 1 << 20}}
	v := newView(setOf(db), f)
	var at []string
	for _, c := range v.cluster.Shards[0].Copies {
		if at = append(at, v.names[c.Node]); !c.Pinned || c.Bytes != 1<<20 {
			t.Errorf("%+v", c)
		}
	}
	if !slices.Equal(at, []string{"c", "e"}) {
		t.Errorf("copies are on %q", at)
	}
	for _, c := range v.cluster.Shards[1].Copies {
		if c.Pinned || c.Bytes != leastBytes {
			t.Errorf("%+v", c)
		}
	}
}

// A node that does not answer keeps what it has and gets nothing, also while others are drained;
// one that is no member any more loses all.
func TestPlanWithNodesAway(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members []string
		away    []string
		drained string
		moves   map[string]int // by node that is left
		waiting int
	}{
		{name: "all here", members: []string{"a", "b", "c", "d"}},
		{name: "one away", members: []string{"a", "b", "c", "d"}, away: []string{"a"}},
		{name: "one drained", members: []string{"a", "b", "c", "d"}, drained: "a", moves: map[string]int{"a": 2}},
		{name: "drained and away", members: []string{"a", "b", "c", "d"}, drained: "a", away: []string{"a"}, waiting: 2},
		{name: "gone", members: []string{"b", "c", "d"}, moves: map[string]int{"a": 2}},
		{name: "gone, and nowhere to go", members: []string{"b", "c"}},
		{name: "gone, and the only place is away", members: []string{"b", "c", "d"}, away: []string{"d"}, waiting: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &facts{members: members(tc.members...), away: tc.away}
			for i := range f.members {
				f.members[i].Draining = f.members[i].Name == tc.drained
			}
			p := planOf(f, true, base(t, "db", "a", "b", "c"))
			got := map[string]int{}
			for _, m := range p.Moves {
				if got[m.From]++; m.To != "d" {
					t.Errorf("%+v", m)
				}
			}
			if len(got) != len(tc.moves) || got["a"] != tc.moves["a"] || p.Waiting != tc.waiting {
				t.Errorf("moves from %v, %d wait: %+v", got, p.Waiting, p.Left)
			}
		})
	}
}

// Copies that jobs work on stay, and are waited for.
func TestPlanBesideJobs(t *testing.T) {
	db := base(t, "db", "a", "b", "c")
	j := &job.Job{State: job.Running}
	j.DatabaseID, j.Range = db.ID, db.Shards[1].Range
	f := &facts{members: members("b", "c", "d"), jobs: []*job.Job{j}}
	if p := planOf(f, true, db); len(p.Moves) != 1 || p.Moves[0].Range != db.Shards[0].Range || p.Waiting != 1 {
		t.Errorf("%+v, %d wait", p.Moves, p.Waiting)
	}
}

// What becomes of copies of a node that is gone, while something comes to it or from it.
func TestPlanAfterNodeIsGone(t *testing.T) {
	full, joining, leaving := ring.StateFull, ring.StateJoining, ring.StateLeaving
	for _, tc := range []struct {
		name    string
		copies  []ring.Copy // of the first shard; "gone" is no member
		moves   string      // from and to; of the other shard nothing is lost
		giveUp  int
		waiting int
		why     placer.Why // of what is left, if anything is
	}{
		{name: "simply full", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}, {Node: "c"}}, moves: "gone d"},
		{name: "another comes in its place", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}, {Node: "c"}, {Node: "e", State: joining, Instead: "gone"}}, moves: "gone e"},
		{name: "another came in its place", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}, {Node: "c"}, {Node: "e", State: full, Instead: "gone"}}, moves: "gone e"},
		{name: "it leaves", copies: []ring.Copy{{Node: "gone", State: leaving}, {Node: "b"}, {Node: "c"}, {Node: "e", State: full, Instead: "gone"}}, moves: "gone e"},
		{name: "it comes in the place of another", copies: []ring.Copy{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "gone", State: joining, Instead: "a"}}, giveUp: 1},
		{name: "it came in the place of another", copies: []ring.Copy{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "gone", State: full, Instead: "a"}}, moves: "gone d"},
		{name: "another leaves for it", copies: []ring.Copy{{Node: "a", State: leaving}, {Node: "b"}, {Node: "c"}, {Node: "gone", State: full, Instead: "a"}}, moves: "gone d"},
		{name: "it took the place of one that was lost", copies: []ring.Copy{{Node: "b"}, {Node: "c"}, {Node: "gone", State: joining}}, moves: "gone d"},
		{name: "beside one that is filled", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}, {Node: "c", State: joining}}, waiting: 1},
		{name: "two of three", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}, {Node: "gone too"}}, why: placer.NoMajority},
		{name: "the only one", copies: []ring.Copy{{Node: "gone"}}, why: placer.NoSource},
		{name: "one of two", copies: []ring.Copy{{Node: "gone"}, {Node: "b"}}, moves: "gone d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := base(t, "db", "a", "b", "c", "e")
			db.Shards[0].Copies = nil
			for i, c := range tc.copies {
				c.ID = uint64(100 + i)
				db.Shards[0].Copies = append(db.Shards[0].Copies, c)
			}
			// d is the emptiest.
			f := &facts{members: members("a", "b", "c", "d", "e")}
			p := planOf(f, true, db)
			moves := ""
			for _, m := range p.Moves {
				moves += m.From + " " + m.To
			}
			if moves != tc.moves || len(p.giveUp) != tc.giveUp || p.Waiting != tc.waiting {
				t.Errorf("moves: %s, given up: %v, %d wait, left: %+v", moves, p.giveUp, p.Waiting, p.Left)
			}
			if tc.why == 0 && tc.name != "the only one" && len(p.Left) > 0 || len(p.Left) > 0 && p.Left[0].Why != tc.why {
				t.Errorf("left: %+v", p.Left)
			}
		})
	}
}

// Where one copy was split and others were not, for good, copies move as others.
func TestPlanWithOverlappingRanges(t *testing.T) {
	db := base(t, "db", "a", "b", "c")
	whole := ring.Shard{Range: ring.Full(), Copies: []ring.Copy{{ID: 70, Node: "x"}}}
	db.Shards = append([]ring.Shard{whole}, db.Shards...)
	slices.SortFunc(db.Shards, func(a, b ring.Shard) int { return int(a.Begin>>16) - int(b.Begin>>16) })
	f := &facts{members: members("a", "b", "c", "x", "y")}
	f.members[3].Draining = true
	p := planOf(f, true, db)
	if len(p.Moves) != 1 || p.Moves[0].From != "x" || p.Moves[0].To != "y" || p.Waiting != 0 {
		t.Errorf("%+v, %d wait, %+v", p.Moves, p.Waiting, p.Left)
	}
}
