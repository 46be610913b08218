package quorum

import "divan/storage/fault"

// Step says how the asking of copies goes on after an answer.
type Step uint8

// The steps.
const (
	Wait    Step = iota // for the copies that have not answered
	Another             // the next copy is asked as well
	Again               // this copy is asked once more
	Enough              // what the others answer does not matter
)

// First collects the answers of copies any of which can answer a question: the
// first usable one is the answer.
type First struct {
	absent int // copies that have to say fault.NotFound until it is the answer
	err    error
}

// NewFirst returns a collector for which fault.NotFound is an answer when that
// many copies have said so, or all that can answer; below 2: at once.
func NewFirst(absent int) First { return First{absent: absent} }

// Take tells what a copy answered. After [Enough] it is the answer.
func (q *First) Take(err error) Step {
	if err == nil {
		return Enough
	}
	absent := fault.Is(err, fault.NotFound)
	if absent {
		q.absent--
	}
	if !Usable(err) || (absent && q.absent > 0) {
		q.err = Telling(q.err, err)
		return Another
	}
	q.err = err
	return Enough
}

// Err returns the answer when it is an error, otherwise the one that says most of
// those that were taken; nil when there was none.
func (q *First) Err() error { return q.err }
