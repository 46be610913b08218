package auth

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"divan/storage/fault"
)

// applicant is a login that needs a slow hash. Peers take turns, and so do the names of a
// peer within its turns, so that no login waits longer because another one asks often. Of
// the names of a peer the newest is first: an attacker may have any number of made-up
// names wait, and a client that has waited long has often given up.
type applicant struct {
	peer, name string
	// proven: this name has logged in from this peer. Such applicants go before all others.
	proven bool
}

// fairSemaphore lets slow hashes run, at most limit at a time (I3).
type fairSemaphore struct {
	limit int
	mu    struct {
		sync.Mutex
		running int
		proven  line
		others  line
		given   int // turns, see nextLocked
	}
}

// ticket is an applicant that waits; called is buffered, as its sender must not wait.
type ticket struct {
	applicant
	called chan bool // false: the queue is full, and others go first
}

// errCrowded refuses a login because too many others wait.
func errCrowded() error {
	return fault.New(fault.Unavailable, "Too many logins at this time. Try again later.")
}

// acquire waits for the applicant's turn; release ends it.
func (t *fairSemaphore) acquire(ctx context.Context, a applicant) error {
	mine := t.join(a)
	if mine == nil {
		return nil
	}
	select {
	case ok := <-mine.called:
		if !ok {
			return errCrowded()
		}
		return nil
	case <-ctx.Done():
		if !t.leave(mine) && <-mine.called { // called meanwhile
			t.release()
		}
		return fmt.Errorf("wait for password hashing: %w", context.Cause(ctx))
	}
}

// join takes a turn at once, which gives nil, or queues up.
func (t *fairSemaphore) join(a applicant) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.running < t.limit {
		t.mu.running++
		return nil
	}
	mine := &ticket{applicant: a, called: make(chan bool, 1)}
	line := &t.mu.others
	if a.proven {
		line = &t.mu.proven
	}
	line.add(mine)
	if t.mu.proven.size+t.mu.others.size > hashQueue {
		line = &t.mu.others
		if line.size == 0 {
			line = &t.mu.proven
		}
		line.last().called <- false
	}
	return mine
}

// leave takes a ticket back; false when it has been called.
func (t *fairSemaphore) leave(mine *ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.proven.remove(mine) || t.mu.others.remove(mine)
}

// release ends a turn, and gives it to the next.
func (t *fairSemaphore) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.nextLocked(); next != nil {
		next.called <- true
		return
	}
	t.mu.running--
}

// nextLocked takes out the next ticket. Each fourth turn goes to an applicant that has not
// logged in before, and has waited longest: newer ones must not keep it out for good.
func (t *fairSemaphore) nextLocked() *ticket {
	t.mu.given++
	first, second, oldest := &t.mu.proven, &t.mu.others, false
	if t.mu.given%4 == 0 {
		first, second, oldest = second, first, true
	}
	if next := first.next(oldest); next != nil {
		return next
	}
	return second.next(oldest)
}

// waiting returns how many wait.
func (t *fairSemaphore) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.proven.size + t.mu.others.size
}

// line is a queue in which peers take turns. There are at most hashQueue in it, so
// that searching it costs next to nothing beside a hash.
type line struct {
	peers []*peerLine // the first is next
	size  int
}

// peerLine are the applicants of a peer, whose names take turns.
type peerLine struct {
	peer  string
	names [][]*ticket // of one name each, the first came first; the first name is next, the last was there first
	size  int
}

func (l *line) add(t *ticket) {
	l.size++
	i := slices.IndexFunc(l.peers, func(p *peerLine) bool { return p.peer == t.peer })
	if i < 0 {
		i = len(l.peers)
		l.peers = append(l.peers, &peerLine{peer: t.peer})
	}
	p := l.peers[i]
	p.size++
	if i = slices.IndexFunc(p.names, func(n []*ticket) bool { return n[0].name == t.name }); i < 0 {
		p.names = slices.Insert(p.names, 0, []*ticket{t})
		return
	}
	p.names[i] = append(p.names[i], t)
}

// next takes out the next ticket or, with oldest, the one that came first of the peer that
// is next; nil when no applicant waits.
func (l *line) next(oldest bool) *ticket {
	if l.size == 0 {
		return nil
	}
	p := l.peers[0]
	name, at := 0, len(p.names[0])-1
	if oldest {
		name, at = len(p.names)-1, 0
	}
	t := l.take(0, name, at)
	if len(p.names) > 1 && p.names[0][0].name == t.name { // else it is gone, or last already
		p.names = append(p.names[1:], p.names[0])
	}
	if len(l.peers) > 1 && l.peers[0] == p {
		l.peers = append(l.peers[1:], p)
	}
	return t
}

// last takes out the ticket to reject when there are too many: the one that came first of
// the name with the most tickets, of the peer with the most tickets.
func (l *line) last() *ticket {
	peer, name := 0, 0
	for i, p := range l.peers {
		if p.size >= l.peers[peer].size {
			peer = i
		}
	}
	names := l.peers[peer].names
	for i, n := range names {
		if len(n) >= len(names[name]) {
			name = i
		}
	}
	return l.take(peer, name, 0)
}

// remove takes out a ticket; false when it is not there.
func (l *line) remove(t *ticket) bool {
	for i, p := range l.peers {
		for j, n := range p.names {
			if k := slices.Index(n, t); k >= 0 {
				l.take(i, j, k)
				return true
			}
		}
	}
	return false
}

// take takes out the ticket at a place.
func (l *line) take(peer, name, at int) *ticket {
	p := l.peers[peer]
	t := p.names[name][at]
	p.names[name] = slices.Delete(p.names[name], at, at+1)
	if len(p.names[name]) == 0 {
		p.names = slices.Delete(p.names, name, name+1)
	}
	if p.size--; p.size == 0 {
		l.peers = slices.Delete(l.peers, peer, peer+1)
	}
	l.size--
	return t
}
