package quorum

import (
	"divan/storage/fault"
)

// Outcome says what has become of a write.
type Outcome uint8

// The outcomes of a write.
const (
	Pending   Outcome = iota // answers are missing that could still change it
	Committed                // durable on w copies: 201
	Accepted                 // durable on at least one copy, w can no longer be reached: 202
	Refused                  // the deciding copy said no; no copy has it
	Failed                   // no copy gave a usable answer
)

// Write counts the answers of the copies of one range about one edit.
//
// The first live copy decides alone (design.md section 6): its refusal is
// final, because no other copy is asked before it has answered. What it
// accepted goes to the other copies as a revision that merges without a check,
// so those can only have it or fail. A copy that gave no usable answer
// ([Usable]) while it should decide is counted as lost, and the next one
// decides; revision ids are deterministic, so it does no harm when the lost
// one had done it all the same.
type Write struct {
	copies, need int
	stored, lost int
	err          error // refusal, or else why the first lost copy was lost
	refused      bool
}

// Majority returns the default of w and r: more than half of the copies.
func Majority(copies int) int { return copies/2 + 1 }

// NewWrite returns the count for a range with that many copies. w below 1
// means the majority; w above the number of copies can never be met, so that
// the outcome is Accepted at best.
func NewWrite(copies, w int) Write {
	if w < 1 {
		w = Majority(copies)
	}
	return Write{copies: copies, need: w}
}

// Decide tells what the deciding copy said: nil for done, a refusal, or an
// error that is no answer; then the next copy has to decide.
func (q *Write) Decide(err error) {
	switch {
	case err == nil:
		q.stored++
	case Usable(err):
		q.refused, q.err = true, err
	default:
		q.Lose(err)
	}
}

// Store tells that one more copy has the edit durable.
func (q *Write) Store() { q.stored++ }

// Lose tells that a copy gave no usable answer, and why.
func (q *Write) Lose(err error) {
	q.lost++
	// A node that is down says less about the trouble than any other error.
	if q.err == nil || (absent(q.err) && !absent(err)) {
		q.err = err
	}
}

// Outcome returns what the answers so far amount to; with Refused and Failed
// the error to give.
func (q *Write) Outcome() (Outcome, error) {
	switch {
	case q.refused:
		return Refused, q.err
	case q.stored >= q.need:
		return Committed, nil
	case q.stored+q.lost < q.copies:
		return Pending, nil
	case q.stored > 0:
		return Accepted, nil
	case q.err == nil:
		return Failed, fault.New(fault.Unavailable, "No copy of the shard can answer now.")
	default:
		return Failed, q.err
	}
}

// Usable reports whether err is an answer about the edit, which holds for
// every copy, or only says that this copy could not answer.
func Usable(err error) bool {
	switch fault.KindOf(err) {
	case fault.Internal, fault.Timeout, fault.Unavailable, fault.NodeDown, fault.Closed,
		fault.Corruption, fault.InsufficientStorage:
		return false
	default:
		return true
	}
}

// absent reports whether err only says that a copy was not there.
func absent(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.NodeDown, fault.Closed:
		return true
	default:
		return false
	}
}
