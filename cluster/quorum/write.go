package quorum

import (
	"errors"
	"slices"

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
// The first live copy decides alone (design.md section 6). What it accepted
// goes to the other copies as a revision that merges without a check, so those
// can only have it or fail. When it gives no usable answer ([Usable]) the next
// one decides; revision ids are deterministic, so it does no harm when the
// first one had done the edit all the same.
//
// A refusal promises that no copy has the edit. It is one only as long as no
// copy that was asked before may have done it unseen ([Doubtful]): otherwise
// what has become of the edit is not known, and the outcome is Failed.
//
// Copies that are being filled get every edit and decide none. While there are such,
// more than half of the full copies, and more than half of all, have to have an edit, so
// that it is on a majority whichever of them are full later (docs/decisions/0039). While a node
// has several copies of a document, of which one comes in the place of another, they count
// among all as one that has the edit when each of them has (docs/decisions/0040).
type Write struct {
	copies, need int // full ones
	stored, lost int
	joining      count   // those that are being filled
	needAll      int     // of all copies; 0: no matter
	nodes, lack  []uint8 // by node with copies: how many they are, and how many lack the edit; nil: one each
	err          error   // why the first lost copy was lost
	refusal      error   // of a deciding copy; counts as long as nothing is stored
	doubt        error   // why it is not known whether a deciding copy has the edit
	gone         error   // why the copies do not keep what was decided
}

// Majority returns the default of w and r: more than half of the copies.
func Majority(copies int) int { return copies/2 + 1 }

// count is of copies that are being filled.
type count struct{ copies, stored, lost int }

// NewWrite returns the count for a range with that many full copies, and others that
// are being filled. w below 1 means the majority; w above the number of full copies can
// never be met, so that the outcome is Accepted at best.
func NewWrite(full, joining, w int) Write {
	q := Write{copies: full, need: w, joining: count{copies: joining}}
	if w < 1 {
		q.need, q.needAll = Majority(full), Majority(full+joining)
	}
	return q
}

// OnNodes tells how many of the copies are on each of their nodes. It keeps nodes.
func (q *Write) OnNodes(nodes []uint8) {
	if q.nodes, q.lack = nodes, slices.Clone(nodes); q.needAll > 0 {
		q.needAll = Majority(len(nodes))
	}
}

// Restart returns the count of the same copies before any has said something.
func (q *Write) Restart() Write {
	return Write{
		copies: q.copies, need: q.need, joining: count{copies: q.joining.copies}, needAll: q.needAll,
		nodes: q.nodes, lack: slices.Clone(q.nodes),
	}
}

// Decide tells what a deciding copy said, on which node (see OnNodes): nil for done, a refusal, or an error
// that is no answer; then another copy has to decide. When several were asked
// because the first was slow, one that has done it outweighs the refusals of
// the others: they merge it.
func (q *Write) Decide(node int, err error) {
	switch {
	case err == nil:
		q.stored++
		q.has(node)
	case Usable(err):
		q.refusal = Telling(q.refusal, err)
	default:
		q.lose(err)
		if q.doubt == nil && Doubtful(err) {
			q.doubt = err
		}
	}
}

// Reconsider takes a refusal back, because the copy that refused was behind
// and decides again.
func (q *Write) Reconsider() { q.refusal = nil }

// Refusal returns what a deciding copy said against the edit when that is
// final; nil otherwise.
func (q *Write) Refusal() error {
	if q.stored == 0 && q.doubt == nil {
		return q.refusal
	}
	return nil
}

// Fail tells that no copy is left to decide, or no time: every copy that has not answered counts as
// lost.
func (q *Write) Fail() {
	q.lost = max(q.copies-q.stored, q.lost)
	q.joining.lost = max(q.joining.copies-q.joining.stored, q.joining.lost)
}

func (q *Write) has(node int) {
	if q.lack != nil {
		q.lack[node]--
	}
}

// enough reports whether enough of all copies have the edit.
func (q *Write) enough() bool {
	if q.lack == nil || q.needAll == 0 {
		return q.stored+q.joining.stored >= q.needAll
	}
	n := 0
	for _, lack := range q.lack {
		if lack == 0 {
			n++
		}
	}
	return n >= q.needAll
}

// Follow tells what a copy on a node said that was to take over what has been decided: nil when it has
// the edit durable.
func (q *Write) Follow(node int, joining bool, err error) {
	if err == nil {
		q.has(node)
	}
	switch {
	case err == nil && joining:
		q.joining.stored++
	case err == nil:
		q.stored++
	case joining:
		q.joining.lost++
	default:
		q.lose(err)
	}
}

// Withdraw tells that the deciding copy does not have the edit any more, nor will the copies that
// stored it keep it: the outcome is Failed, for any answers of theirs.
func (q *Write) Withdraw(err error) { q.gone = err }

// Doubt returns why a deciding copy may have the edit although it did not say
// so; nil when none may.
func (q *Write) Doubt() error { return q.doubt }

// lose tells that a full copy gave no usable answer, and why.
func (q *Write) lose(err error) {
	q.lost++
	q.err = Telling(q.err, err)
}

// Outcome returns what the answers so far amount to; with Refused and Failed
// the error to give.
func (q *Write) Outcome() (Outcome, error) {
	switch {
	case q.gone != nil:
		return Failed, q.gone
	case q.stored >= q.need && q.enough():
		return Committed, nil
	case q.stored == 0 && q.refusal != nil && q.doubt == nil:
		return Refused, q.refusal
	case q.stored == 0 && q.refusal != nil:
		return Failed, q.doubt
	case q.stored+q.lost < q.copies || q.needAll > 0 && q.joining.stored+q.joining.lost < q.joining.copies:
		return Pending, nil
	case q.stored > 0:
		return Accepted, nil
	case q.err == nil:
		return Failed, fault.New(fault.Unavailable, "No copy of the shard can answer now.")
	default:
		return Failed, q.err
	}
}

// Open reports whether fewer copies have the edit than should, and other ones may be asked to
// decide on it or to take it over: no copy can have done it unseen.
func (q *Write) Open() bool {
	switch o, _ := q.Outcome(); o {
	case Pending, Accepted:
		return true
	case Failed:
		return q.gone == nil && q.doubt == nil
	default:
		return false
	}
}

// Usable reports whether err is an answer about the edit, which holds for
// every copy, or only says that this copy could not answer.
func Usable(err error) bool {
	if _, final := errors.AsType[finalError](err); final {
		return true
	}
	return fault.ClassOf(err) == fault.Answer
}

// finalError is one that Usable is true of.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Final returns an error that says the same, of which Usable is true. It is for what this node refuses
// whichever copy answers, such as memory for the answers.
func Final(err error) error { return finalError{err} }

// Doubtful reports whether a copy that gave this error to an edit may have
// done it: the answer got lost, or trouble came after it was applied. A copy
// that says itself that it does not take part has not, and neither has one
// that was never asked, which an error says by a method NotSent.
func Doubtful(err error) bool {
	if Usable(err) {
		return false
	}
	var sent interface{ NotSent() bool }
	if errors.As(err, &sent) && sent.NotSent() {
		return false
	}
	return fault.Doubtful(err)
}

// Telling returns that one of two errors of different copies that says more
// about what was asked: an answer more than trouble, trouble more than a copy
// that was not there; the first one when both say as much. That a node does not
// hold its copy says as much as an answer: the database may be gone. Either may
// be nil.
func Telling(old, next error) error {
	if old == nil || (next != nil && telling(next) > telling(old)) {
		return next
	}
	return old
}

func telling(err error) int {
	_, final := errors.AsType[finalError](err)
	switch {
	case fault.ClassOf(err) == fault.Absent && !final:
		return 0
	case !Usable(err) && !fault.Is(err, fault.NoCopy):
		return 1
	default:
		return 2
	}
}
