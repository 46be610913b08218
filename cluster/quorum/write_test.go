package quorum

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

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
