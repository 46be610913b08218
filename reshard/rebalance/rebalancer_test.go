package rebalance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/reshard"
	"divan/reshard/job"
	"divan/reshard/reshardtest"
	"divan/shard/ring"
)

// leader is a rebalancer that leads, beside nodes that have nothing to do.
type leader struct {
	*Rebalancer
	t     *testing.T
	group *reshardtest.Group
	lead  lead
	mu    sync.Mutex
	down  map[string]bool
	asked func() // called when a node is asked for sizes
}

// newLeader returns the leader of nodes; settings are section, key, value, and so on.
func newLeader(t *testing.T, group *reshardtest.Group, settings ...string) *leader {
	t.Helper()
	values := config.Values{}
	for i := 0; i+2 < len(settings); i += 3 {
		values[settings[i]] = map[string]string{settings[i+1]: settings[i+2]}
	}
	conf, err := config.New(config.Options{Flags: values})
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{t: t, group: group, down: map[string]bool{}}
	l.Rebalancer, err = New(Options{
		Node: "a", Map: group, Group: group, Records: group, Table: reshard.NewTable(group, group, conf), Config: conf, Logger: zap.NewNop(),
		Bytes: func(string) (int64, error) { return 1 << 20, nil }, Behind: func() []string { return nil },
		Alive: func(node string) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return !l.down[node]
		},
		Ask: func(context.Context, string, string, []byte) ([]byte, error) {
			if l.asked != nil {
				l.asked()
			}
			return []byte(`{"sizes":[],"last":""}`), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// looks has the leader look some times, as if enough time had passed in between.
func (l *leader) looks(times int) *Record {
	l.t.Helper()
	for range times {
		l.lead.plan, l.lead.refill = time.Time{}, time.Time{}
		if err := l.look(l.t.Context(), &l.lead); err != nil {
			l.t.Fatal(err)
		}
	}
	rec, _ := l.Record()
	return rec
}

func (l *leader) start(leavingOnly bool) {
	l.t.Helper()
	if _, err := l.Start(l.t.Context(), leavingOnly, ""); err != nil {
		l.t.Fatal(err)
	}
}

// age has what the leader has seen of nodes been so for long.
func (l *leader) age() {
	for _, seen := range []map[string]time.Time{l.lead.watch.away, l.lead.watch.here, l.lead.watch.refused} {
		for n := range seen {
			seen[n] = seen[n].Add(-time.Hour)
		}
	}
}

func (l *leader) jobs(state job.State) (n int) {
	for _, j := range l.o.Table.Jobs() {
		if j.State == state {
			n++
		}
	}
	return n
}

func groupOf(nodes ...string) *reshardtest.Group {
	g := reshardtest.NewGroup("a", "b", "c")
	g.Create("db", ring.Split(2)...)
	for _, n := range nodes {
		g.PutNode(meta.Node{Name: n})
	}
	return g
}

// A drain that is asked for while the last plan is made is not lost.
func TestDrainDuringLastPlan(t *testing.T) {
	group := groupOf("d")
	l := newLeader(t, group)
	l.start(true)
	once := sync.Once{}
	l.asked = func() {
		once.Do(func() {
			group.PutNode(meta.Node{Name: "b", Draining: true})
			if _, err := l.Start(t.Context(), true, "b is drained."); !errors.Is(err, ErrRunning) {
				t.Error(err)
			}
		})
	}
	l.lead.term = 1
	if err := l.look(t.Context(), &l.lead); err == nil {
		t.Error("what was decided before was written")
	}
	if rec := l.looks(2); rec.State != Running || l.jobs(job.New) != 2 {
		t.Errorf("%+v, %d jobs", rec, l.jobs(job.New))
	}
}

// A rebalance that is cancelled while its moves are begun makes an end of them all.
func TestCancelWhileMovesAreBegun(t *testing.T) {
	group := groupOf("d")
	group.PutNode(meta.Node{Name: "b", Draining: true})
	l := newLeader(t, group)
	l.start(true)
	l.looks(1)
	if l.jobs(job.New) != 2 {
		t.Fatalf("%d jobs", l.jobs(job.New))
	}
	if err := l.Cancel(t.Context(), "why"); err != nil {
		t.Fatal(err)
	}
	rec := l.looks(2)
	if rec.State != Cancelled || rec.Reason != "why" || len(rec.Batch) != 0 || len(l.o.Table.Jobs()) != 0 {
		t.Errorf("%+v, %d jobs", rec, len(l.o.Table.Jobs()))
	}
}

// Without a place for jobs a rebalance says what it waits for, and does not end.
func TestNoPlacesForJobs(t *testing.T) {
	group := groupOf("d")
	group.PutNode(meta.Node{Name: "b", Draining: true})
	l := newLeader(t, group, "reshard", "max_jobs", "0")
	l.start(true)
	if rec := l.looks(5); rec.State != Running || !strings.Contains(rec.Refused, "max_jobs") || len(rec.Batch) != 0 {
		t.Errorf("%+v", rec)
	}
}

// What has failed is not tried again in the same rebalance, which ends all the same.
func TestFailedMovesEnd(t *testing.T) {
	group := groupOf("d")
	group.PutNode(meta.Node{Name: "b", Draining: true})
	l := newLeader(t, group)
	l.start(true)
	l.looks(1)
	for _, r := range group.Records("reshard/job/") {
		j, err := job.Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		j.Fail("a full disk", 0, 1) // long ago, as the clock of its node says
		value, err := j.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := group.PutRecord(t.Context(), r.Key, value, r.Version); err != nil {
			t.Fatal(err)
		}
	}
	rec := l.looks(4)
	if rec.State != Completed || rec.Failed.Copies != 2 || len(rec.Failures) != 2 || rec.Failures[0].Reason != "a full disk" {
		t.Errorf("%+v", rec)
	}
}

// A new node that comes while another one is drained gets its part afterwards.
func TestNewNodeDuringDrain(t *testing.T) {
	group := groupOf("d")
	for _, name := range []string{"lake", "pool", "sea"} {
		group.Create(name, ring.Split(2)...)
	}
	l := newLeader(t, group, "cluster", "rebalance", "auto")
	l.start(true)
	if rec := l.looks(1); rec.State != Completed || len(rec.Members) != 0 {
		t.Errorf("%+v", rec)
	}
	group.PutNode(meta.Node{Name: "e"})
	l.looks(1)
	l.age()
	if rec := l.looks(2); rec.State != Running || rec.LeavingOnly || len(rec.Batch) == 0 {
		t.Errorf("%+v", rec)
	}
}

// Nodes are taken out one at a time, when nothing else is wrong and their copies have other places.
func TestTakeOutLost(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes []string // beside a, b and c, which have all copies
		down  []string
		out   []string
	}{
		{"one, with a place", []string{"d"}, []string{"b"}, []string{"b"}},
		{"one, without", nil, []string{"b"}, nil},
		{"one, and the place is away", []string{"d"}, []string{"b", "d"}, nil},
		{"all but one", []string{"d", "e", "f"}, []string{"b", "c"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			group := groupOf(tc.nodes...)
			l := newLeader(t, group, "cluster", "replace_after", "60")
			for _, n := range tc.down {
				l.down[n] = true
			}
			for range 5 {
				l.looks(1)
				l.age()
			}
			for _, n := range []string{"b", "c", "d", "e", "f"} {
				_, member := group.Node(n)
				was := n == "b" || n == "c" || slices.Contains(tc.nodes, n)
				if out := slices.Contains(tc.out, n); was && member == out {
					t.Errorf("%s is a member: %t", n, member)
				}
			}
			if len(tc.out) == 0 {
				return
			}
			for range 5 {
				group.Settle("db")
				l.looks(1)
			}
			db, _ := group.Database("db")
			for _, s := range db.Shards {
				if len(s.Full()) != 3 || s.On("b") || !s.On("d") {
					t.Errorf("%+v", s)
				}
			}
			if rec, _ := l.Record(); rec.State != Completed || rec.Moved.Copies != 2 {
				t.Errorf("%+v", rec)
			}
			// One more is lost: there is no other place.
			l.down["c"] = true
			for range 5 {
				l.looks(1)
				l.age()
			}
			if _, member := group.Node("c"); !member {
				t.Error("c was taken out")
			}
		})
	}
}

// A record can be written with any text quoted in it.
func TestRecordFits(t *testing.T) {
	group := groupOf("d")
	l := newLeader(t, group)
	l.start(false)
	s := l.load()
	for range 100 {
		s.fail(Item{Database: strings.Repeat("x", 230), From: strings.Repeat("<", 200), To: strings.Repeat("&", 200)}, strings.Repeat("<", 1000))
	}
	if err := l.save(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if rec, _ := l.Record(); rec.Failed.Copies != 100 || len(rec.Failures) == 0 || len(encoded(t, rec)) > maxRecordBytes {
		t.Errorf("%d bytes, %+v", len(encoded(t, rec)), rec.Failed)
	}
}
