package fairqueue

import (
	"slices"
	"time"
)

// Slice is how long a turn lasts before others get theirs, where it can be given up
// half way. What a turn takes is not known when it begins: so much is charged then, and
// set right at its end.
const Slice = 10 * time.Millisecond

// backgroundWeight is how many times as much as other uses a background use is
// charged.
const backgroundWeight = 8

// schedule decides who is next.
//
// Invariants:
//
//	S1  the held turns are at most capacity.
//	S2  between calls no use waits that may have a turn: none is free, or all free ones
//	    are kept from those who wait by the rule of shares.
//	S3  a use of a database that holds nothing may have any free turn.
type schedule struct {
	capacity int
	// shares: a database gets another turn only while it holds fewer than are free, so
	// that n databases which take all they can leave one of n+1 parts for the next.
	// An account holds at most half of what its database might hold.
	shares bool

	free    int
	waiting int
	clock   int64 // virtual time: the tag of the turn that was given last
	latest  int64 // the greatest tag
	groups  map[groupKey]*group
	active  []*group // those in which a use waits
	sweepAt int      // groups
}

type groupKey struct {
	database   string
	background bool
}

// group is a database, or its background.
type group struct {
	flow
	key      groupKey
	clock    int64 // virtual time within
	latest   int64
	accounts map[string]*account
	active   []*account // those that wait
	sweepAt  int        // accounts
}

type account struct {
	flow
	group *group
	name  string
	uses  []*use // that wait, the oldest first
}

// is returns what the account stands for.
func (a *account) is() Flow { return Flow{a.group.key.database, a.name, a.group.key.background} }

// flow is the common part of a database and an account.
type flow struct {
	tag     int64 // virtual time at which its next turn begins, nanoseconds
	held    int   // turns
	waiting int   // uses
}

// use is one who waits for a turn or has one.
type use struct {
	of   *account
	turn *Turn // to be told when it gets its turn
}

func newSchedule(capacity int, shares bool) *schedule {
	return &schedule{capacity: capacity, shares: shares, free: capacity, groups: map[groupKey]*group{}, sweepAt: minSweep}
}

// add takes in a use, and reports whether it has its turn at once.
func (s *schedule) add(u *use, f Flow) bool {
	u.of = s.account(f)
	a, g := u.of, u.of.group
	s.arrive(a)
	if s.eligible(g) && s.eligibleIn(g, a) { // then no waiting use may have it (S2)
		s.grant(u)
		return true
	}
	s.enqueue(u)
	return false
}

// arrive begins a busy period: what was not used before it is not owed.
func (s *schedule) arrive(a *account) {
	g := a.group
	if g.held+g.waiting == 0 {
		g.tag = max(g.tag, s.clock)
	}
	if a.held+a.waiting == 0 {
		a.tag = max(a.tag, g.clock)
	}
}

// enqueue has a use wait, behind those of its account.
func (s *schedule) enqueue(u *use) {
	a, g := u.of, u.of.group
	s.arrive(a)
	if g.waiting == 0 {
		s.active = append(s.active, g)
	}
	if a.waiting == 0 {
		g.active = append(g.active, a)
	}
	a.uses = append(a.uses, u)
	a.waiting++
	g.waiting++
	s.waiting++
}

// eligible applies the rule of shares to databases.
func (s *schedule) eligible(g *group) bool { return s.free > 0 && (!s.shares || g.held < s.free) }

// eligibleIn applies it to the accounts of a database that is eligible.
func (s *schedule) eligibleIn(g *group, a *account) bool {
	return !s.shares || a.held < (s.free-g.held+1)/2
}

func (s *schedule) grant(u *use) {
	a, g := u.of, u.of.group
	s.free--
	g.held++
	a.held++
	s.clock, g.clock = max(s.clock, g.tag), max(g.clock, a.tag)
	s.charge(u, Slice)
}

// charge moves a use's account and database on.
func (s *schedule) charge(u *use, took time.Duration) {
	a, g := u.of, u.of.group
	cost := int64(took)
	if g.key.background {
		cost *= backgroundWeight
	}
	g.tag += cost
	a.tag += cost
	s.latest, g.latest = max(s.latest, g.tag), max(g.latest, a.tag)
}

// end ends a turn that took so long.
func (s *schedule) end(u *use, took time.Duration) {
	a, g := u.of, u.of.group
	s.charge(u, took-Slice)
	s.free++
	g.held--
	a.held--
	if g.held+g.waiting == 0 {
		g.clock = max(g.clock, g.latest) // a busy period is over: what was used in it does not count in the next
	}
	if s.free == s.capacity && s.waiting == 0 {
		s.clock = max(s.clock, s.latest)
	}
}

// next gives a turn to the use that is next; nil: none may have one.
func (s *schedule) next() *use {
	var best *account
	for _, g := range s.active {
		if !s.eligible(g) {
			g.tag = max(g.tag, s.clock) // what the rule of shares keeps from it is not owed to it
			continue
		}
		if best != nil && g.tag >= best.group.tag {
			continue
		}
		if a := s.nextIn(g); a != nil {
			best = a
		}
	}
	if best == nil {
		return nil
	}
	u := best.uses[0]
	s.takeOut(u)
	s.grant(u)
	return u
}

// nextIn returns the account that is next in a database, nil when none may be.
func (s *schedule) nextIn(g *group) (best *account) {
	for _, a := range g.active {
		switch {
		case !s.eligibleIn(g, a):
			a.tag = max(a.tag, g.clock)
		case best == nil || a.tag < best.tag:
			best = a
		}
	}
	return best
}

// takeOut takes a use out of those that wait, and reports whether it was one of them.
func (s *schedule) takeOut(u *use) bool {
	a, g := u.of, u.of.group
	at := slices.Index(a.uses, u)
	if at < 0 {
		return false
	}
	a.uses = slices.Delete(a.uses, at, at+1)
	a.waiting--
	g.waiting--
	s.waiting--
	if a.waiting == 0 {
		g.active = without(g.active, a)
	}
	if g.waiting == 0 {
		s.active = without(s.active, g)
	}
	return true
}

// without removes e, without keeping the order.
func without[T comparable](list []T, e T) []T {
	at, last := slices.Index(list, e), len(list)-1
	list[at] = list[last]
	clear(list[last:])
	return list[:last]
}

// account returns the account of a flow.
func (s *schedule) account(f Flow) *account {
	key := groupKey{f.Database, f.Background}
	g := s.groups[key]
	if g == nil {
		if len(s.groups) >= s.sweepAt {
			forget(s.groups, func(g *group) *flow { return &g.flow }, s.clock)
			s.sweepAt = max(minSweep, 2*len(s.groups))
		}
		g = &group{key: key, accounts: map[string]*account{}, sweepAt: minSweep}
		s.groups[key] = g
	}
	a := g.accounts[f.Account]
	if a == nil {
		if len(g.accounts) >= g.sweepAt {
			forget(g.accounts, func(a *account) *flow { return &a.flow }, g.clock)
			g.sweepAt = max(minSweep, 2*len(g.accounts))
		}
		a = &account{group: g, name: f.Account}
		g.accounts[f.Account] = a
	}
	return a
}

// How many flows are remembered that neither have a turn nor wait for one: at least
// minSweep, and at most maxOwing because of what they owe.
const (
	minSweep = 64
	maxOwing = 10_000
)

// forget removes flows that have no turn and wait for none: first those that owe
// nothing, then, when they are very many, all.
func forget[K comparable, F any](flows map[K]F, of func(F) *flow, clock int64) {
	for _, all := range []bool{false, true} {
		for key, f := range flows {
			if f := of(f); f.held+f.waiting == 0 && (all || f.tag <= clock) {
				delete(flows, key)
			}
		}
		if len(flows) < maxOwing {
			return
		}
	}
}
