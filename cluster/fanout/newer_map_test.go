package fanout_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/fanout/fanouttest"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mapped is a database by one map. Its copies are on the nodes of that, and it hears of the
// newer map when one of them says that there is one.
type mapped struct {
	*fanouttest.Database
	generation uint64
	nodes      []string
	newer      *mapped // nil: this is the newest
	heard      bool
}

// maps returns a database by the first of some maps with those nodes, each newer than the
// one before it.
func maps(nodes ...[]string) *mapped {
	var first *mapped
	for generation := len(nodes); generation > 0; generation-- {
		m := &mapped{generation: uint64(generation), nodes: nodes[generation-1], newer: first}
		m.Database = &fanouttest.Database{Copies: map[string]*fanouttest.Frail{}}
		for _, node := range m.nodes {
			m.Copies[node] = &fanouttest.Frail{Node: node}
		}
		first = m
	}
	return first
}

func (m *mapped) targets() (out []ring.Replica) {
	for _, node := range m.nodes {
		out = append(out, ring.Replica{Copy: ring.Copy{Node: node}, Generation: m.generation})
	}
	return out
}

// NoteRefusal implements fanout.Database.
func (m *mapped) NoteRefusal(err error) { m.heard = m.heard || fault.NewerMap(err) > m.generation }

// Renewed implements fanout.Database.
func (m *mapped) Renewed(context.Context, ring.Replica) (fanout.Database, []ring.Replica, bool) {
	if !m.heard || m.newer == nil {
		return nil, nil, false
	}
	return m.newer, m.newer.targets(), true
}

// answers are what nodes say to a request by a map of each generation.
type answers map[string]map[uint64]error

// TestNewerMapIsAsked: when a copy refuses because it knows a newer map and no other one
// answers, the copies of that are asked.
func TestNewerMapIsAsked(t *testing.T) {
	stale, missing := fault.NewStaleMap(2), fault.New(fault.NotFound, "missing")
	staler := fault.NewStaleMap(3)
	down := fanout.NodeDown("b")
	for _, tc := range []struct {
		name    string
		maps    [][]string
		answers answers
		from    string // node and generation; "": none
		by      uint64
		err     error
	}{
		{name: "one copy answers all the same", maps: [][]string{{"a", "b"}, {"c"}}, answers: answers{"a": {1: stale}}, from: "b", by: 1},
		{name: "one has an answer that is an error", maps: [][]string{{"a"}, {"c"}}, answers: answers{"a": {1: missing}}, err: missing},
		{name: "both know a newer map", maps: [][]string{{"a", "b"}, {"c"}}, answers: answers{"a": {1: stale}, "b": {1: stale}}, from: "c", by: 2},
		{name: "one knows it, the other is down", maps: [][]string{{"a", "b"}, {"c", "b"}}, answers: answers{"a": {1: stale}, "b": {1: down, 2: down}}, from: "c", by: 2},
		{name: "all are down", maps: [][]string{{"b"}, {"c"}}, answers: answers{"b": {1: down}}, err: down},
		{name: "the same nodes by a newer map", maps: [][]string{{"a"}, {"a"}}, answers: answers{"a": {1: stale}}, from: "a", by: 2},
		{name: "and by one that is newer still", maps: [][]string{{"a"}, {"a"}, {"a"}}, answers: answers{"a": {1: stale, 2: staler}}, from: "a", by: 3},
		{name: "this node knows none", maps: [][]string{{"a"}}, answers: answers{"a": {1: stale}}, err: stale},
		{name: "the newer one has no copies", maps: [][]string{{"a"}, nil}, answers: answers{"a": {1: stale}}, err: fanout.NoCopy()},
		{name: "the copy of this node", maps: [][]string{{"caller", "b"}, {"c"}}, answers: answers{"caller": {1: stale}, "b": {1: down}}, from: "c", by: 2},
		{name: "only the copy of this node", maps: [][]string{{"caller"}, {"caller"}}, answers: answers{"caller": {1: stale}}, from: "caller", by: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := maps(tc.maps...)
			got, err := fanout.AnyCopy[string]{
				Database: db, Copies: db.targets(),
				Ask: func(_ context.Context, _ replica.Copy, t ring.Replica) (string, error) {
					return t.Node, tc.answers[t.Node][t.Generation]
				},
			}.First(t.Context())
			if (err == nil) != (tc.err == nil) || err != nil && fault.Reason(err) != fault.Reason(tc.err) {
				t.Fatalf("%v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if got.Got != tc.from || got.From.Node != tc.from || got.From.Generation != tc.by {
				t.Errorf("%q of %+v", got.Got, got.From)
			}
			if by := got.Database.(*mapped); by.generation != tc.by || !slices.Contains(got.Copies, got.From) {
				t.Errorf("by the map %d, copies %+v", by.generation, got.Copies)
			}
		})
	}
}

// numbers is a kind of rows: the numbers below a limit, on every copy.
type numbers struct {
	next    int
	known   bool
	refuses func(t ring.Replica) error           // to be opened
	breaks  func(t ring.Replica, next int) error // when it is read
}

// batch is one number.
type batch struct{ n int }

const limit = 10

func (k *numbers) Position() (int, bool) { return k.next, k.known }

func (k *numbers) Moved(struct{}) error { return nil }

func (k *numbers) Open(_ context.Context, _ replica.Copy, t ring.Replica, from int) (fanout.Opened[struct{}, batch], error) {
	if err := k.refuses(t); err != nil {
		return fanout.Opened[struct{}, batch]{}, err
	}
	return fanout.Opened[struct{}, batch]{Stream: &counting{next: from, fails: func(next int) error { return k.breaks(t, next) }}}, nil
}

// counting is the numbers of one copy.
type counting struct {
	next  int
	fails func(next int) error
}

func (c *counting) Next(b *batch) (more bool, err error) {
	if err := c.fails(c.next); err != nil {
		return false, err
	}
	b.n = c.next
	c.next++
	return c.next < limit, nil
}

func (c *counting) Close() {}

// TestStreamGoesOnByNewerMap: rows go on behind the last one from a copy of the newer map, when
// one says so, be it opened or in the middle.
func TestStreamGoesOnByNewerMap(t *testing.T) {
	stale := fault.NewStaleMap(2)
	ofFirst := func(t ring.Replica, err error) error {
		if t.Generation == 1 {
			return err
		}
		return nil
	}
	never := func(ring.Replica, int) error { return nil }
	for _, node := range []string{"a", "caller"} {
		for name, tc := range map[string]struct {
			refuses func(t ring.Replica) error
			breaks  func(t ring.Replica, next int) error
			unknown bool
			rows    int
			by      uint64 // the map in the end
			err     error
		}{
			"no copy knows one": {refuses: func(ring.Replica) error { return nil }, breaks: never, rows: limit, by: 1},
			"at the beginning":  {refuses: func(t ring.Replica) error { return ofFirst(t, stale) }, breaks: never, rows: limit, by: 2},
			"in the middle": {
				refuses: func(ring.Replica) error { return nil }, rows: limit, by: 2,
				breaks: func(t ring.Replica, next int) error {
					if next == 5 {
						return ofFirst(t, stale)
					}
					return nil
				},
			},
			"in the middle, where another copy cannot be told": {
				refuses: func(ring.Replica) error { return nil }, rows: 5, by: 1, err: stale, unknown: true,
				breaks: func(t ring.Replica, next int) error {
					if next == 5 {
						return ofFirst(t, stale)
					}
					return nil
				},
			},
		} {
			t.Run(node+", "+name, func(t *testing.T) {
				db := maps([]string{node}, []string{node, "b"})
				k := &numbers{known: !tc.unknown, refuses: tc.refuses, breaks: tc.breaks}
				s := fanout.FailoverStream[int, struct{}, batch]{Database: db, Ctx: t.Context(), Log: zap.NewNop(), Kind: k, Copies: db.targets()}
				defer s.Close()
				err := s.Start()
				for err == nil {
					var b *batch
					if b, err = s.Next(); b == nil {
						break
					}
					if b.n != k.next {
						t.Fatalf("row %d, want %d", b.n, k.next)
					}
					k.next++
				}
				if k.next != tc.rows || (err == nil) != (tc.err == nil) || err != nil && fault.KindOf(err) != fault.KindOf(tc.err) {
					t.Errorf("%d rows, %v", k.next, err)
				}
				if by := s.Database.(*mapped).generation; by != tc.by {
					t.Errorf("by the map %d", by)
				}
			})
		}
	}
}

// slowFirst is rows of which the first copy does not answer before its context ends.
type slowFirst struct{ ended chan struct{} }

func (slowFirst) Position() (int, bool) { return 0, true }
func (slowFirst) Moved(int) error       { return nil }
func (k slowFirst) Open(ctx context.Context, _ replica.Copy, t ring.Replica, _ int) (fanout.Opened[int, int], error) {
	if t.Node != "a" {
		return fanout.Opened[int, int]{}, nil
	}
	<-ctx.Done()
	defer close(k.ended)
	return fanout.Opened[int, int]{}, ctx.Err()
}

// TestSlowCopyBesideTheChosen: a copy that is slow ends after another one was chosen; under
// the race detector it must not use what changes.
func TestSlowCopyBesideTheChosen(t *testing.T) {
	db, k := maps([]string{"a", "b"}), slowFirst{make(chan struct{})}
	s := &fanout.FailoverStream[int, int, int]{
		Database: db, Ctx: t.Context(), Log: zap.NewNop(), Kind: k, Copies: db.targets(), Patience: time.Millisecond, Limit: time.Minute,
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	<-k.ended
}
