package wire

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"divan/cluster/network"
)

// Limits of handshakes.
const (
	maxUnfinished       = 256 // under way from hosts of nodes; the oldest gives way to a newer one
	maxStrangers        = 64  // the same from all other hosts together
	strangerShare       = 16  // the same from one of them
	maxHosts            = 1024
	strangerRest        = 100 * time.Millisecond // after a failure of a stranger
	longestStrangerRest = 10 * time.Second
	mostAbandoned       = 8  // handshakes that a stranger may give up without a rest, as a node whose time was too short
	maxHeld             = 32 // connections of hosts that rest, which are not closed at once
	holdTime            = time.Second
)

// handshakeLimiter decides who may begin a handshake. Hosts from which a node has proven that
// it knows the secret, or to which this node has, come first: they have places of
// their own and no rest. Other hosts share what is left, and one that fails has to rest,
// each time twice as long.
//
// Locks: mu guards what is inside; nothing is waited for while it is held.
type handshakeLimiter struct {
	mu struct {
		sync.Mutex
		nodes     map[string]*visitor
		others    *simplelru.LRU[string, *visitor] // by host
		held      int
		ours      list.List // unfinished handshakes of nodes' hosts, the oldest first
		strangers list.List // the same of others
	}
}

// visitor is a host.
type visitor struct {
	warned    bool // that it does not know the secret
	failures  int
	abandoned int       // handshakes that it gave up once TLS had begun
	rests     time.Time // until then
}

// entry is an unfinished handshake.
type entry struct {
	host string
	conn net.Conn
}

func newHandshakeLimiter() *handshakeLimiter {
	d := &handshakeLimiter{}
	d.mu.nodes = map[string]*visitor{}
	d.mu.others, _ = simplelru.NewLRU[string, *visitor](maxHosts, nil) // it refuses what is not positive
	return d
}

// hostOf returns what an address counts as, see network.Of: without the port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return network.Of(ip).String()
	}
	return host
}

// enter lets a connection begin a handshake, or closes it soon. When there are too many the
// oldest one is closed, of the same host if that has its share. done may be called more
// than once.
func (d *handshakeLimiter) enter(c net.Conn, now time.Time) (done func(), ok bool) {
	host := hostOf(c.RemoteAddr())
	d.mu.Lock()
	queue, most, oldest := &d.mu.ours, maxUnfinished, (*list.Element)(nil)
	if d.mu.nodes[host] == nil {
		queue, most = &d.mu.strangers, maxStrangers
		if now.Before(d.strangerLocked(host).rests) {
			d.mu.Unlock()
			d.hold(c)
			return nil, false
		}
		if oldest = d.excessLocked(host); oldest != nil {
			d.strangerLocked(host).rest(now) // it begins more than it ends
		}
	}
	if oldest == nil && queue.Len() >= most {
		oldest = queue.Front()
	}
	var victim net.Conn
	if oldest != nil {
		victim = queue.Remove(oldest).(entry).conn
	}
	e := queue.PushBack(entry{host, c})
	d.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
	return func() {
		d.mu.Lock()
		queue.Remove(e) // does nothing when it is out already
		d.mu.Unlock()
	}, true
}

// hold closes a connection, but not at once unless there are too many: a dialer that waits for the
// end of one to begin another is slowed down.
func (d *handshakeLimiter) hold(c net.Conn) {
	d.mu.Lock()
	ok := d.mu.held < maxHeld
	if ok {
		d.mu.held++
	}
	d.mu.Unlock()
	if !ok {
		_ = c.Close()
		return
	}
	time.AfterFunc(holdTime, func() {
		_ = c.Close()
		d.mu.Lock()
		d.mu.held--
		d.mu.Unlock()
	})
}

// excessLocked returns the oldest handshake of a stranger that has its share.
func (d *handshakeLimiter) excessLocked(host string) (oldest *list.Element) {
	n := 0
	for e := d.mu.strangers.Back(); e != nil; e = e.Prev() {
		if e.Value.(entry).host == host {
			oldest = e
			n++
		}
	}
	if n < strangerShare {
		return nil
	}
	return oldest
}

// strangerLocked returns what is known of a host that is none of a node.
func (d *handshakeLimiter) strangerLocked(host string) *visitor {
	v, known := d.mu.others.Get(host)
	if !known {
		v = &visitor{}
		d.mu.others.Add(host, v)
	}
	return v
}

// proven says that a node is at a host.
func (d *handshakeLimiter) proven(a net.Addr) {
	host := hostOf(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.nodes[host] != nil {
		return
	}
	if len(d.mu.nodes) == maxHosts { // hosts that come and go: begin again
		clear(d.mu.nodes)
	}
	d.mu.nodes[host] = &visitor{}
	d.mu.others.Remove(host)
}

// failed has a stranger rest whose handshake has failed, and reports whether that is
// to be told: of each host a wrong proof is once.
func (d *handshakeLimiter) failed(a net.Addr, err error, now time.Time) (tell bool) {
	wrong, abandoned := errors.Is(err, errSecret), errors.Is(err, errAbandoned)
	switch {
	case wrong, abandoned, errors.Is(err, errNoHello), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		return false // it left before it said anything, or was closed for another
	}
	host := hostOf(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.mu.nodes[host]
	if v == nil {
		v = d.strangerLocked(host)
		if abandoned {
			v.abandoned++
		}
		if !abandoned || v.abandoned > mostAbandoned {
			v.rest(now)
		}
	}
	tell = wrong && !v.warned
	v.warned = v.warned || wrong
	return tell
}

// rest has a stranger rest, each time twice as long.
func (v *visitor) rest(now time.Time) {
	v.rests = now.Add(min(strangerRest<<min(v.failures, 10), longestStrangerRest))
	v.failures++
}
