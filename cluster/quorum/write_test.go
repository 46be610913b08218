package quorum

import (
	"errors"
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
	decide := func(err error) step { return func(q *Write) { q.Decide(err) } }
	store := func(q *Write) { q.Store() }
	fail := func(q *Write) { q.Fail() }
	reconsider := func(q *Write) { q.Reconsider() }
	withdraw := func(q *Write) { q.Withdraw(errAway) }
	lose := func(err error) step { return func(q *Write) { q.Lose(err) } }
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
			q := NewWrite(tc.copies, tc.w)
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
// any order.
func TestWriteProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		copies := rapid.IntRange(1, 5).Draw(t, "copies")
		w := rapid.IntRange(0, 6).Draw(t, "w")
		q := NewWrite(copies, w)
		need := w
		if w == 0 {
			need = copies/2 + 1
		}
		stored := 0
		for i := range copies {
			if rapid.Bool().Draw(t, "stored") {
				stored++
				if stored == 1 {
					q.Decide(nil)
				} else {
					q.Store()
				}
			} else {
				q.Lose(errDown)
			}
			got, err := q.Outcome()
			answered := i + 1
			switch {
			case stored >= need:
				if got != Committed {
					t.Fatalf("%d of %d copies have it, w=%d: %d", stored, copies, need, got)
				}
			case answered < copies:
				if got != Pending {
					t.Fatalf("settled with %d answers missing: %d", copies-answered, got)
				}
			case stored > 0:
				if got != Accepted {
					t.Fatalf("%d of %d copies have it, w=%d: %d", stored, copies, need, got)
				}
			default:
				if got != Failed || err == nil {
					t.Fatalf("no copy has it: %d, %v", got, err)
				}
			}
		}
	})
}
