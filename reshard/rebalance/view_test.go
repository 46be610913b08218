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

// A node that does not answer keeps what it has and gets nothing, also while others are drained; one that is no member any
// more loses all.
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

// Copies that jobs work on stay, also those that an earlier job failed to move; only the first are waited for.
func TestPlanBesideJobs(t *testing.T) {
	db := base(t, "db", "a", "b", "c")
	for state, waiting := range map[job.State]int{job.Running: 1, job.Stopped: 1, job.Failed: 0} {
		j := &job.Job{State: state}
		j.DatabaseID, j.Range = db.ID, db.Shards[1].Range
		f := &facts{members: members("b", "c", "d"), jobs: []*job.Job{j}}
		p := planOf(f, true, db)
		if len(p.Moves) != 1 || p.Moves[0].Range != db.Shards[0].Range || p.Waiting != waiting {
			t.Errorf("%s: %+v, %d wait", state, p.Moves, p.Waiting)
		}
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
