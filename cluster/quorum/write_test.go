package quorum

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

var (
	errConflict = fault.New(fault.Conflict, "Document update conflict.")
	errAway     = fault.New(fault.Unavailable, "maintenance")
	errLost     = fault.New(fault.NodeDown, "the answer got lost")
	errDown     = fault.New(fault.NodeDown, "down")
	errDisk     = errors.New("input/output error")
)

func TestWrite(t *testing.T) {
	type step func(*Write)
	decide := func(err error) step { return func(q *Write) { q.Decide(0, err) } }
	store := func(q *Write) { q.Follow(0, false, nil) }
	fail := func(q *Write) { q.Fail() }
	reconsider := func(q *Write) { q.Reconsider() }
	withdraw := func(q *Write) { q.Withdraw(errAway) }
	lose := func(err error) step { return func(q *Write) { q.Follow(0, false, err) } }
	for _, tc := range []struct {
		name   string
		copies int
		w      int
		steps  []step
		want   Outcome
		err    error
	}{
		{name: "nothing yet", copies: 3, want: Pending},
		{name: "one copy", copies: 1, steps: []step{decide(nil)}, want: Committed},
		{name: "one copy, more asked for", copies: 1, w: 3, steps: []step{decide(nil)}, want: Accepted},
		{name: "one copy refuses", copies: 1, steps: []step{decide(errConflict)}, want: Refused, err: errConflict},
		{name: "one copy fails", copies: 1, steps: []step{decide(errDisk)}, want: Failed, err: errDisk},
		{name: "the first of three has it", copies: 3, steps: []step{decide(nil)}, want: Pending},
		{name: "w=1", copies: 3, w: 1, steps: []step{decide(nil)}, want: Committed},
		{name: "two of three", copies: 3, steps: []step{decide(nil), store}, want: Committed},
		{name: "w=3 of three", copies: 3, w: 3, steps: []step{decide(nil), store}, want: Pending},
		{name: "w=3, one lost", copies: 3, w: 3, steps: []step{decide(nil), store, lose(errDown)}, want: Accepted},
		{name: "w=4 can never be", copies: 3, w: 4, steps: []step{decide(nil), store, store}, want: Accepted},
		{name: "one has it, two are down", copies: 3, steps: []step{decide(nil), lose(errDown), lose(errDown)}, want: Accepted},
		{name: "a refusal is final", copies: 3, steps: []step{decide(errConflict)}, want: Refused, err: errConflict},
		{name: "the second accepts, the third follows", copies: 3, steps: []step{decide(errDown), decide(nil), store}, want: Committed},
		{name: "the second accepts, the third is down", copies: 3, steps: []step{decide(errDown), decide(nil), lose(errDown)}, want: Accepted},
		{name: "a refusal counts when the first surely has nothing", copies: 3, steps: []step{decide(errAway), decide(errConflict)}, want: Refused, err: errConflict},
		{name: "a refusal is none when the first may have it", copies: 3, steps: []step{decide(errLost), decide(errConflict)}, want: Failed, err: errLost},
		{name: "the second refuses, the slow first one accepts", copies: 3, steps: []step{decide(errConflict), decide(nil)}, want: Pending},
		{name: "no time is left", copies: 3, steps: []step{decide(errLost), fail}, want: Failed, err: errLost},
		{name: "a refusal is taken back", copies: 1, steps: []step{decide(errConflict), reconsider, decide(nil)}, want: Committed},
		{name: "two of three, and the first has it no more", copies: 3, steps: []step{decide(nil), store, withdraw}, want: Failed, err: errAway},
		{name: "the first has it no more, a late copy took it", copies: 3, steps: []step{decide(nil), withdraw, store, store}, want: Failed, err: errAway},
		{name: "all down", copies: 3, steps: []step{decide(errDown), decide(errDown), decide(errDown)}, want: Failed, err: errDown},
		{name: "trouble says more than absence", copies: 2, steps: []step{decide(errDown), decide(errDisk)}, want: Failed, err: errDisk},
		{name: "trouble said before absence stays", copies: 2, steps: []step{decide(errDisk), decide(errDown)}, want: Failed, err: errDisk},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := NewWrite(tc.copies, 0, tc.w)
			for _, s := range tc.steps {
				s(&q)
			}
			got, err := q.Outcome()
			if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("got %d, %v, want %d, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestJointWrite: while copies are being filled, more than half of the full ones and more than half
// of all have to have an edit, unless the request asks for a number.
func TestJointWrite(t *testing.T) {
	type step func(*Write)
	decide := func(q *Write) { q.Decide(0, nil) }
	refuse := func(q *Write) { q.Decide(0, errConflict) }
	store := func(q *Write) { q.Follow(0, false, nil) }
	lose := func(q *Write) { q.Follow(0, false, errDown) }
	joins := func(q *Write) { q.Follow(0, true, nil) }
	away := func(q *Write) { q.Follow(0, true, errDown) }
	fail := func(q *Write) { q.Fail() }
	for _, tc := range []struct {
		name             string
		full, joining, w int
		steps            []step
		want             Outcome
		err              error
	}{
		{name: "the only full one", full: 1, joining: 1, steps: []step{decide}, want: Pending},
		{name: "the only full one, and the other", full: 1, joining: 1, steps: []step{decide, joins}, want: Committed},
		{name: "the only full one, and the other is away", full: 1, joining: 1, steps: []step{decide, away}, want: Accepted},
		{name: "one full and one of two others", full: 1, joining: 2, steps: []step{decide, joins}, want: Committed},
		{name: "one full and none of two others", full: 1, joining: 2, steps: []step{decide, away}, want: Pending},
		{name: "two full ones are a majority of three", full: 2, joining: 1, steps: []step{decide, store}, want: Committed},
		{name: "one full one and the other are a majority, but not of the full ones", full: 2, joining: 1, steps: []step{decide, joins}, want: Pending},
		{name: "and the second full one is down", full: 2, joining: 1, steps: []step{decide, joins, lose}, want: Accepted},
		{name: "two full ones are no majority of four", full: 2, joining: 2, steps: []step{decide, store}, want: Pending},
		{name: "three of four", full: 2, joining: 2, steps: []step{decide, store, away, joins}, want: Committed},
		{name: "two of four", full: 2, joining: 2, steps: []step{decide, store, away, away}, want: Accepted},
		{name: "two of three full ones and one other of two", full: 3, joining: 2, steps: []step{decide, lose, joins, store}, want: Committed},
		{name: "w=1", full: 2, joining: 2, w: 1, steps: []step{decide}, want: Committed},
		{name: "w=2, others do not count", full: 2, joining: 2, w: 2, steps: []step{decide, joins, joins}, want: Pending},
		{name: "w=2, the second is down", full: 2, joining: 1, w: 2, steps: []step{decide, joins, lose}, want: Accepted},
		{name: "w=2, all full ones", full: 2, joining: 2, w: 2, steps: []step{decide, store}, want: Committed},
		{name: "w=3 of two can never be", full: 2, joining: 1, w: 3, steps: []step{decide, store, joins}, want: Accepted},
		{name: "w=3 of two, the other does not matter", full: 2, joining: 1, w: 3, steps: []step{decide, store}, want: Accepted},
		{name: "no full one", full: 2, joining: 1, steps: []step{lose, lose, joins}, want: Failed, err: errDown},
		{name: "no full one, the other may answer", full: 2, joining: 1, steps: []step{lose, lose}, want: Pending},
		{name: "a refusal is final", full: 1, joining: 2, steps: []step{refuse}, want: Refused, err: errConflict},
		{name: "no time is left for the other", full: 1, joining: 1, steps: []step{decide, fail}, want: Accepted},
		{name: "no time is left for the full ones", full: 3, joining: 1, steps: []step{decide, joins, fail}, want: Accepted},
		{name: "no time is left after enough", full: 3, joining: 1, steps: []step{decide, joins, store, fail}, want: Committed},
		{name: "no time for anybody", full: 1, joining: 1, steps: []step{lose, fail}, want: Failed, err: errDown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := NewWrite(tc.full, tc.joining, tc.w)
			for _, s := range tc.steps {
				s(&q)
			}
			got, err := q.Outcome()
			if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("got %d, %v, want %d, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestWriteProperties checks the count against its definition, for answers in
// any order, of copies that are full and others.
func TestWriteProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.IntRange(1, 5).Draw(t, "full")
		joining := rapid.IntRange(0, 3).Draw(t, "joining")
		w := rapid.IntRange(-1, 6).Draw(t, "w")
		q := NewWrite(full, joining, w)
		m := model{full: full, all: full + joining, w: w}
		var answers []bool // whether they are of full copies
		for i := range m.all {
			answers = append(answers, i < full)
		}
		answers = rapid.Permutation(answers).Draw(t, "order")
		for _, of := range answers {
			m.answer(&q, of, rapid.Bool().Draw(t, "stored"))
			m.check(t, &q)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				if q = q.Restart(); !reflect.DeepEqual(q, NewWrite(full, joining, w)) {
					t.Fatalf("%+v", q)
				}
				break
			}
			if late := q; rapid.Bool().Draw(t, "no time is left") { // the others go on all the same
				late.Fail()
				m := m
				m.answered, m.heard = m.all, m.full
				m.check(t, &late)
			}
		}
	})
}

// model is what the copies of a range have said.
type model struct {
	full, all, w int

	answered, heard int // of all, and of the full ones
	stored, joined  int
}

// answer has one copy more say something.
func (m *model) answer(q *Write, full, stored bool) {
	m.answered++
	if full {
		m.heard++
	}
	switch {
	case full && stored && m.stored == 0:
		m.stored++
		q.Decide(0, nil)
	case full && stored:
		m.stored++
		q.Follow(0, false, nil)
	case full:
		q.Follow(0, false, errDown)
	case stored:
		m.joined++
		q.Follow(0, true, nil)
	default:
		q.Follow(0, true, errDown)
	}
}

// check compares what a count says with what it should.
func (m *model) check(t *rapid.T, q *Write) {
	t.Helper()
	enough := m.stored >= m.w
	if m.w < 1 {
		enough = 2*m.stored > m.full && 2*(m.stored+m.joined) > m.all
	}
	want := Failed
	switch {
	case enough:
		want = Committed
	case m.heard < m.full, m.w < 1 && m.answered < m.all:
		want = Pending
	case m.stored > 0:
		want = Accepted
	}
	if got, err := q.Outcome(); got != want || (err != nil) != (want == Failed) {
		t.Fatalf("%+v: %d, %v, want %d", *m, got, err, want)
	}
}
