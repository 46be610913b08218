package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
)

// kind is a kind of fault.
type kind uint8

const (
	partition kind = iota // some nodes and the others do not hear each other
	oneWay                // some nodes are heard by the others and do not hear them
	slow                  // everything between some nodes and the others takes long
	lossy                 // packets are lost, streams stutter
	crash                 // a node is killed; what was not synced may be lost
	powerCut              // the same, and its peers do not see their connections end
	wipe                  // a node is killed and loses its copies
	comeback              // later it is killed again, and has the copies again that it had lost
	stop                  // a node is stopped and started again
	maintain              // a node is in maintenance mode
	kinds
)

func (k kind) String() string {
	return [...]string{"partition", "one-way cut", "slow links", "lossy links", "crash", "power cut", "loss of a disk", "return of a lost disk", "stop", "maintenance"}[k]
}

// fault is something that is wrong for a while.
type fault struct {
	kind       kind
	from, to   time.Duration // since the start of the run
	nodes      []int         // that it is about
	link       simnet.Link   // of slow and lossy links
	unsyncedPc int           // of a crash: the probability that data that was not synced is there all the same
}

func (f fault) String() string {
	return fmt.Sprintf("%v to %v: %v of %v", f.from, f.to, f.kind, f.nodes)
}

// plan is what happens in one run, but for what the clients do.
type plan struct {
	seed      uint64
	nodes     int
	clients   int
	pause     time.Duration // of a client between two requests, on average
	databases []database
	standard  simnet.Link
	faults    []fault
	heal      time.Duration // nothing is broken from then on
	length    time.Duration // of the clients' work
	grow      time.Duration // when one more node joins; 0: none does
	splits    []split
	balances  []balance
	replace   int // how often in the end a node is lost for good, another takes its place, and work goes on
}

type database struct {
	name string
	q    int
}

// settling is how long after a fault everything must work as if it had never
// been.
const settling = 20 * time.Second

// newPlan returns the plan of a seed.
func newPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		seed: seed, nodes: 3, clients: 2 + rng.IntN(3),
		standard: simnet.Link{Latency: time.Duration(100+rng.IntN(2000)) * time.Microsecond, Jitter: time.Duration(rng.IntN(1500)) * time.Microsecond},
	}
	if rng.IntN(5) == 0 {
		p.nodes = 4 + rng.IntN(2)
	}
	for i := range 1 + rng.IntN(2) {
		p.databases = append(p.databases, database{fmt.Sprint("db", i), 1 + rng.IntN(3)})
	}
	at := time.Duration(2+rng.IntN(4)) * time.Second
	busy := make([]time.Duration, p.nodes) // until when a node is down
	wiped := false
	for range 2 + rng.IntN(4) {
		f := newFault(rng, p.nodes, at)
		p.heal = max(p.heal, f.to)
		overlap := slices.ContainsFunc(f.nodes, func(n int) bool { return busy[n] >= f.from-time.Second })
		if f.kind >= crash {
			if overlap || f.kind == wipe && wiped {
				continue
			}
			wiped = wiped || f.kind == wipe
			for _, n := range f.nodes {
				busy[n] = f.to
			}
		}
		p.faults = append(p.faults, f)
		if f.kind == wipe && rng.IntN(2) == 0 { // perhaps while its copies are being filled
			from := f.to + time.Duration(2000+rng.IntN(10000))*time.Millisecond
			back := fault{kind: comeback, nodes: f.nodes, from: from, to: from + time.Duration(500+rng.IntN(4000))*time.Millisecond}
			p.faults = append(p.faults, back)
			p.heal, busy[f.nodes[0]] = max(p.heal, back.to), back.to
		}
		at += time.Duration(rng.IntN(8000)) * time.Millisecond
		if rng.IntN(4) == 0 { // enough for a calm time in between
			at = p.heal + settling + 5*time.Second
		}
	}
	p.length = p.heal + settling + 8*time.Second
	if rng.IntN(6) == 0 {
		p.grow = time.Duration(1+rng.Int64N(int64(p.length/time.Second))) * time.Second
	}
	if rng.IntN(6) == 0 {
		p.replace = 1 + rng.IntN(2)
	}
	p.splits, p.balances = newSplits(&p), newBalances(&p)
	p.pause = time.Duration(80+rng.IntN(300)) * time.Millisecond
	return p
}

func newFault(rng *rand.Rand, nodes int, at time.Duration) fault {
	f := fault{kind: kind(rng.IntN(int(kinds))), from: at, to: at + time.Duration(500+rng.IntN(12000))*time.Millisecond}
	some := 1
	if rng.IntN(3) == 0 {
		some = 1 + rng.IntN(nodes-1)
	}
	f.nodes = rng.Perm(nodes)[:some]
	slices.Sort(f.nodes)
	switch f.kind {
	case slow:
		f.link = simnet.Link{Latency: time.Duration(50+rng.IntN(1500)) * time.Millisecond, Jitter: time.Duration(1+rng.IntN(500)) * time.Millisecond}
	case lossy:
		f.link = simnet.Link{Latency: time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.05 + rng.Float64()*0.4}
	case crash, powerCut:
		if rng.IntN(2) == 0 {
			f.unsyncedPc = rng.IntN(101)
		}
		if rng.IntN(8) == 0 { // everything goes down at once
			f.nodes = rng.Perm(nodes)
		}
	case comeback: // of what was not lost
		f.kind = wipe
		f.nodes = f.nodes[:1]
	case stop, maintain, wipe:
		f.nodes = f.nodes[:1]
	case partition, oneWay, kinds:
	}
	return f
}

// moment is the begin or end of a fault.
type moment struct {
	at    time.Duration
	fault int // its index; grows: a node joins; splits: shards are split
	begin bool
	split split
}

const (
	grows  = -1
	splits = -2
)

// moments returns the begins and ends by time.
func (p plan) moments() []moment {
	var out []moment
	for i, f := range p.faults {
		out = append(out, moment{at: f.from, fault: i, begin: true}, moment{at: f.to, fault: i})
	}
	if p.grow > 0 {
		out = append(out, moment{at: p.grow, fault: grows})
	}
	for _, s := range p.splits {
		out = append(out, moment{at: s.at, fault: splits, split: s})
	}
	slices.SortStableFunc(out, func(a, b moment) int { return int(a.at - b.at) })
	return out
}

// calm returns the times when nothing is broken, nor was shortly before.
func (p plan) calm() [][2]time.Duration {
	var out [][2]time.Duration
	from, broken := time.Duration(0), 0
	for _, m := range p.moments() {
		if m.fault < 0 {
			continue
		}
		if m.begin {
			if broken == 0 && m.at > from {
				out = append(out, [2]time.Duration{from, m.at})
			}
			broken++
			continue
		}
		if broken--; broken == 0 {
			from = m.at + settling
		}
	}
	return append(out, [2]time.Duration{from, max(from, p.length)})
}

// returns reports whether a lost disk comes back. A copy on it that is not in the map any more
// is an orphan then, which stays for a while.
func (p plan) returns() bool {
	return slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind == comeback })
}

func (p plan) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d: %d nodes, %d clients, %v, links %v ± %v, %v", p.seed, p.nodes, p.clients, p.databases, p.standard.Latency, p.standard.Jitter, p.length)
	for _, f := range p.faults {
		fmt.Fprintf(&out, "\n    %v", f)
	}
	for _, s := range p.splits {
		fmt.Fprintf(&out, "\n    %v", s)
	}
	for _, b := range p.balances {
		fmt.Fprintf(&out, "\n    %v", b)
	}
	if p.grow > 0 {
		fmt.Fprintf(&out, "\n    %v: one more node", p.grow)
	}
	if p.replace > 0 {
		fmt.Fprintf(&out, "\n    in the end, %d times: another node for a lost one", p.replace)
	}
	return out.String()
}

func TestPlans(t *testing.T) {
	seen := map[kind]bool{}
	for seed := range uint64(500) {
		p := newPlan(seed)
		if !reflect.DeepEqual(p, newPlan(seed)) {
			t.Fatalf("seed %d has two plans", seed)
		}
		open := map[int]int{} // node → fault that it is down for
		for _, m := range p.moments() {
			if m.fault < 0 {
				continue
			}
			f := p.faults[m.fault]
			seen[f.kind] = true
			if f.to <= f.from || f.to > p.heal || len(f.nodes) == 0 || len(f.nodes) >= p.nodes+1 {
				t.Errorf("seed %d: %v", seed, f)
			}
			for _, n := range f.nodes {
				if _, down := open[n]; f.kind >= crash && m.begin && down {
					t.Errorf("seed %d: %v of a node that is down already", seed, f)
				}
				if f.kind >= crash && m.begin {
					open[n] = m.fault
				} else if f.kind >= crash {
					delete(open, n)
				}
			}
		}
		for _, c := range p.calm() {
			for _, f := range p.faults {
				if f.from < c[1] && f.to+settling > c[0] {
					t.Errorf("seed %d: %v is calm, and there is %v", seed, c, f)
				}
			}
		}
	}
	if len(seen) != int(kinds) {
		t.Errorf("the plans hold only %v", seen)
	}
}
