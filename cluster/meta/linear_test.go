package meta

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"divan/storage/fault"
)

// act is one operation on a database, and out what came of it.
type act struct {
	kind string // create, delete, get
	name string
}

type out struct {
	ok      bool
	id      [16]byte
	unknown bool // no answer: it may have happened, or happen later
}

// register is the history of one name: the id of the database that exists,
// none, or some when its creation was never answered.
func register() porcupine.Model {
	var none, some [16]byte
	some[0] = 1
	return porcupine.Model{
		Partition: byName,
		Init:      func() any { return none },
		Step: func(s, input, output any) (bool, any) {
			is, in, got := s.([16]byte), input.(act), output.(out)
			is1 := is == got.id || is == some // it may be the one that was answered about
			switch {
			case got.unknown && in.kind == "create" && is == none:
				return true, some
			case got.unknown && in.kind == "create":
				return true, is
			case got.unknown:
				return true, none
			case in.kind == "create" && got.ok:
				return is == none, got.id
			case in.kind == "create":
				return is != none, is
			case !got.ok: // not found
				return is == none, is
			case in.kind == "get":
				return is != none && is1, got.id
			}
			return is != none && is1, none
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

func byName(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, op := range history {
		name := op.Input.(act).name
		parts[name] = append(parts[name], op)
	}
	return slices.Collect(maps.Values(parts))
}

// worker does random operations through random nodes, and records them.
type worker struct {
	g    *testCluster
	id   int
	rand *rand.Rand

	mu    *sync.Mutex
	ops   *[]porcupine.Operation
	begin time.Time
}

func (w *worker) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1+w.rand.IntN(80)) * time.Millisecond):
		}
		w.g.mu.Lock()
		p := w.g.nodes[w.rand.IntN(len(w.g.nodes))]
		m, running := p.meta, p.running
		w.g.mu.Unlock()
		if !running || !m.ready.is() {
			continue
		}
		in := act{[]string{"create", "delete", "get"}[w.rand.IntN(3)], fmt.Sprintf("db%d", w.rand.IntN(4))}
		call := time.Since(w.begin)
		got, err := w.do(m, in)
		end := int64(time.Since(w.begin))
		if err != nil { // no majority, or the node was stopped under it: a change may still happen
			end = math.MaxInt64
		}
		if err != nil && in.kind == "get" {
			continue
		}
		w.mu.Lock()
		*w.ops = append(*w.ops, porcupine.Operation{ClientId: w.id, Input: in, Output: got, Call: int64(call), Return: end})
		w.mu.Unlock()
	}
}

func (w *worker) do(m *Meta, in act) (out, error) {
	ctx := w.g.t.Context()
	var db *Database
	var err error
	switch in.kind {
	case "create":
		db, err = m.CreateDatabase(ctx, Create{Name: in.name, Q: 1, N: 3})
	case "delete":
		db, err = m.DeleteDatabase(ctx, in.name)
	default:
		if err = m.CatchUp(ctx); err == nil {
			var ok bool
			if db, ok = m.Database(in.name); !ok {
				err = errNoDatabase()
			}
		}
	}
	switch {
	case err == nil:
		return out{ok: true, id: db.ID}, nil
	case fault.Is(err, fault.Exists), fault.Is(err, fault.NotFound):
		return out{}, nil
	}
	return out{unknown: true}, err
}

// Creations, deletions and look-ups through any node are linearizable while
// nodes are cut off, stopped and started, and answers get lost.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { linearizable(t, seed) })
		})
	}
}

func linearizable(t *testing.T, seed uint64) {
	t.Helper()
	g := newTestCluster(t, 3)
	dice := rand.New(rand.NewPCG(seed, 1))
	g.lose(func(string, string) bool { return dice.IntN(50) == 0 })
	var ops []porcupine.Operation
	var mu sync.Mutex
	var wg sync.WaitGroup
	stop := make(chan struct{})
	begin := time.Now()
	for id := range 6 {
		w := &worker{g: g, id: id, rand: rand.New(rand.NewPCG(seed, uint64(id+2))), mu: &mu, ops: &ops, begin: begin}
		wg.Go(func() { w.run(stop) })
	}
	plan := rand.New(rand.NewPCG(seed, 99))
	for range 12 {
		<-time.After(time.Duration(500+plan.IntN(1500)) * time.Millisecond)
		victim := plan.IntN(len(g.nodes))
		switch plan.IntN(3) {
		case 0:
			g.cut(victim)
		case 1:
			g.stop(victim)
		case 2:
			g.cut(g.leader())
		}
		<-time.After(time.Duration(300+plan.IntN(2500)) * time.Millisecond)
		g.heal()
		if !g.nodes[victim].running {
			g.start(victim)
		}
	}
	close(stop)
	wg.Wait()
	answered := 0
	for _, op := range ops {
		if op.Return != math.MaxInt64 {
			answered++
		}
	}
	if answered < 500 {
		t.Errorf("only %d of %d operations were answered", answered, len(ops))
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	// No time-out: the bubble's clock stands still while the history is checked.
	if !porcupine.CheckOperations(register(), ops) {
		t.Errorf("a history of %d operations is not linearizable", len(ops))
	}
}
