// Package simnet is a network of many hosts in one process, for tests: streams
// and packets with latency, cuts in one or both directions, loss, and hosts
// that die. It starts no goroutine and uses only timers of package time, so it
// works in bubbles of testing/synctest, where time is virtual.
//
// A Host has the methods of wire.Network. Hosts are known by their IP address.
//
// LOCKS: one mutex, Network.mu, guards everything. No goroutine waits while holding it.
package simnet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Link says how bytes travel from one host to another.
type Link struct {
	// Cut lets nothing pass: data of streams waits, packets are lost.
	Cut bool
	// Latency is how long everything takes; up to Jitter is added at random.
	// Packets may overtake each other by it, the bytes of a stream do not.
	Latency, Jitter time.Duration
	// Loss is the probability that a packet is lost. Data of a stream comes
	// later instead, as TCP sends it again.
	Loss float64
}

// retransmission is how much later data of a stream comes that was lost once.
const retransmission = 200 * time.Millisecond

// route is one direction between two hosts.
type route struct{ from, to netip.Addr }

func (r route) back() route { return route{r.to, r.from} }

// Network connects hosts.
type Network struct {
	mu struct {
		sync.Mutex
		rng      *rand.Rand
		hosts    map[netip.Addr]*Host // the latest of each address
		standard Link
		links    map[route]Link
		pipes    map[*pipe]struct{} // that may still be used
		changed  chan struct{}      // closed and replaced when a dialer should look again
	}
}

// New returns a network without hosts whose links are perfect. Loss and jitter
// follow from seed and from the order in which things are sent.
func New(seed uint64) *Network {
	n := &Network{}
	n.mu.rng = rand.New(rand.NewPCG(seed, 0x6e6574))
	n.mu.hosts = map[netip.Addr]*Host{}
	n.mu.links = map[route]Link{}
	n.mu.pipes = map[*pipe]struct{}{}
	n.mu.changed = make(chan struct{})
	return n
}

// Boot starts a host with that IP address. The one that had the address
// before must be down. An address that cannot be parsed, and one that is in
// use, are errors.
func (n *Network) Boot(ip string) (*Host, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, fmt.Errorf("boot a host: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if before := n.mu.hosts[addr]; before != nil {
		if !before.down {
			return nil, fmt.Errorf("boot a host: %s is in use", ip)
		}
		before.resetLocked(n) // a host that still talks to it hears that it knows nothing of that
	}
	h := &Host{network: n, addr: addr, nextPort: firstPort, listeners: map[uint16]*listener{}, sockets: map[uint16]*socket{}}
	n.mu.hosts[addr] = h
	n.wakeLocked()
	return h, nil
}

// SetStandard says how bytes travel between hosts for which SetLink said
// nothing else.
func (n *Network) SetStandard(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changeLocked(func() { n.mu.standard = l })
}

// SetLink says how bytes travel from one IP address to another. The other
// direction stays as it is. It panics when an address cannot be parsed.
func (n *Network) SetLink(from, to string, l Link) {
	r := route{netip.MustParseAddr(from), netip.MustParseAddr(to)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changeLocked(func() { n.mu.links[r] = l })
}

// Heal makes every link a standard one.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changeLocked(func() { clear(n.mu.links) })
}

// linkLocked returns how bytes travel; within a host they are there at once.
func (n *Network) linkLocked(r route) Link {
	if r.from == r.to {
		return Link{}
	}
	if l, ok := n.mu.links[r]; ok {
		return l
	}
	return n.mu.standard
}

// changeLocked changes links and settles what that means for what is under way.
func (n *Network) changeLocked(change func()) {
	cut := map[*pipe][2]bool{}
	for p := range n.mu.pipes {
		cut[p] = [2]bool{n.linkLocked(p.route).Cut, n.linkLocked(p.route.back()).Cut}
	}
	change()
	now := time.Now()
	for p, was := range cut {
		p.settle(now, was, [2]bool{n.linkLocked(p.route).Cut, n.linkLocked(p.route.back()).Cut}, n.delayLocked(p.route))
	}
	for _, h := range n.mu.hosts {
		for _, s := range h.sockets {
			s.lose(now, func(from netip.Addr) bool { return n.linkLocked(route{from, h.addr}).Cut })
		}
	}
	n.wakeLocked()
}

// delayLocked draws how long something takes on its way.
func (n *Network) delayLocked(r route) time.Duration {
	l := n.linkLocked(r)
	d := l.Latency
	if l.Jitter > 0 {
		d += time.Duration(n.mu.rng.Int64N(int64(l.Jitter)))
	}
	return d
}

// lostLocked draws whether something is lost on its way.
func (n *Network) lostLocked(r route) bool {
	l := n.linkLocked(r)
	return l.Loss > 0 && n.mu.rng.Float64() < l.Loss
}

// wakeLocked makes dialers look again.
func (n *Network) wakeLocked() {
	close(n.mu.changed)
	n.mu.changed = make(chan struct{})
}

// Open returns how many connections have an end that is not closed, for tests
// of leaks.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[*stream]bool{}
	for _, p := range slices.Collect(maps.Keys(n.mu.pipes)) {
		for _, s := range []*stream{p.writer, p.reader} {
			if !s.closed {
				seen[s] = true
			}
		}
	}
	return len(seen)
}
