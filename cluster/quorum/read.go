package quorum

import (
	"slices"

	"divan/storage/doc"
	"divan/storage/fault"
)

// Verdict says what the answers of several copies about one document amount
// to.
type Verdict uint8

// The verdicts of a read.
const (
	Asking   Verdict = iota // more answers are needed
	Agreed                  // the copies gave the same answer
	Newest                  // the others' revisions are ancestors of the chosen one's, or they have none
	Diverged                // revisions that do not descend from each other were named
	Absent                  // every copy that answered has no such document
	Unread                  // no copy gave a usable answer
)

// Answer is one copy's view of a document: its winner's path, newest first, as long as the copy
// remembers it.
type Answer struct {
	Path    doc.Path
	Deleted bool // the winner is a tombstone
}

func (a Answer) rev() doc.Rev { return a.Path.Rev() }

// Read collects the answers of the copies of one range about one document
// (semantics.md section 8.5). As soon as r copies have answered, the newest
// answer by ancestry is it; of answers that do not descend from each other the
// one whose revision wins, by the rule of winners. Copies that cannot answer
// are replaced by others; when there are none left, what was heard decides.
type Read struct {
	copies, need int
	answers      []answer // those that have come
	missing      int      // copies without the document
	lost         int
	err          error // why the first lost copy was lost, or why it is missing
}

type answer struct {
	Answer
	copy  int
	votes int // copies whose answer this is
}

// NewRead returns a reader for a range with that many copies. r below 1 means
// the majority, and no more than all of them can be asked for.
func NewRead(copies, r int) *Read {
	if r < 1 {
		r = Majority(copies)
	}
	return &Read{copies: copies, need: min(r, copies)}
}

// Found tells what copy i answered.
func (q *Read) Found(i int, a Answer) {
	for k := range q.answers {
		if q.answers[k].rev() == a.rev() {
			q.answers[k].votes++
			return
		}
	}
	q.answers = append(q.answers, answer{Answer: a, copy: i, votes: 1})
}

// Refused tells that a copy answered with an error: that there is no such
// document, or that it cannot answer.
func (q *Read) Refused(err error) {
	if fault.Is(err, fault.NotFound) {
		q.missing++
		if q.err == nil || !Usable(q.err) || fault.Is(err, fault.Deleted) {
			q.err = err
		}
		return
	}
	q.lost++
	q.err = Telling(q.err, err)
}

// Verdict returns what the answers so far amount to; the number of the copy
// whose answer is the one to give for Agreed, Newest and Diverged; and the
// error to give for Absent and Unread.
func (q *Read) Verdict() (v Verdict, from int, err error) {
	heard := q.missing
	for _, a := range q.answers {
		heard += a.votes
	}
	if heard < q.need && heard+q.lost < q.copies {
		return Asking, 0, nil
	}
	switch heads := q.heads(); len(heads) {
	case 0:
		if q.missing > 0 {
			return Absent, 0, q.err
		}
		return Unread, 0, q.err
	case 1:
		if heads[0].votes == heard {
			return Agreed, heads[0].copy, nil
		}
		return Newest, heads[0].copy, nil
	default:
		best := slices.MaxFunc(heads, func(a, b answer) int { return winner(a.Answer, b.Answer) })
		return Diverged, best.copy, nil
	}
}

// Need returns how many usable answers are still wanted, as far as is known.
func (q *Read) Need() int {
	heard := q.missing
	for _, a := range q.answers {
		heard += a.votes
	}
	return max(q.need-heard, 0)
}

// Step says how to go on while that many of the copies that were asked have not
// answered.
func (q *Read) Step(pending int) Step {
	switch v, _, _ := q.Verdict(); {
	case v != Asking:
		return Enough
	case q.Need() > pending:
		return Another
	default:
		return Wait
	}
}

// heads returns the answers that are no ancestor of another answer.
func (q *Read) heads() []answer {
	if len(q.answers) == 1 {
		return q.answers
	}
	var out []answer
	for _, a := range q.answers {
		covered := slices.ContainsFunc(q.answers, func(b answer) bool {
			return b.rev() != a.rev() && contains(b.Path, a.rev())
		})
		if !covered {
			out = append(out, a)
		}
	}
	return out
}

// contains reports whether r is on a path.
func contains(p doc.Path, r doc.Rev) bool {
	if r.Pos > p.Start || p.Start-r.Pos >= uint64(len(p.IDs)) {
		return false
	}
	return p.IDs[p.Start-r.Pos] == r.ID
}

// winner orders answers by the triple of semantics.md section 2.4.
func winner(a, b Answer) int {
	if a.Deleted != b.Deleted {
		if a.Deleted {
			return -1
		}
		return 1
	}
	return a.rev().Compare(b.rev())
}
