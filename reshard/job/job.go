// Package job holds the record of the split of one shard, of the merge of some, or of the move of
// one, and a pure machine that decides the next action. It has no clock and does nothing itself:
// the remaining actions follow from the job and from the states of its copies in the map of the
// database, so a job goes on after a crash at any point.
package job

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"divan/shard/ring"
)

// State is the state of a job, as the API names it.
type State string

// The states.
const (
	New       State = "new"
	Running   State = "running"
	Stopped   State = "stopped"
	Completed State = "completed"
	Failed    State = "failed"
)

// Type is the type of a job, as the API names it.
type Type string

// The types.
const (
	Split Type = "split" // a copy into its halves, on its node
	Merge Type = "merge" // copies of neighbouring ranges into one, on their node
	Move  Type = "move"  // a copy to another node
)

// Step is how far a job is, as the API names it (split_state).
type Step string

// The steps in their order.
const (
	StepNew         Step = "new"
	InitialCopy     Step = "initial_copy"
	Topoff1         Step = "topoff1"
	BuildIndices    Step = "build_indices"
	Topoff2         Step = "topoff2"
	CopyLocalDocs   Step = "copy_local_docs"
	UpdateShardmap  Step = "update_shardmap"
	WaitSourceClose Step = "wait_source_close"
	Topoff3         Step = "topoff3"
	SourceDelete    Step = "source_delete"
	StepCompleted   Step = "completed"
)

// steps are all of them, in order.
func steps() []Step {
	return []Step{
		StepNew, InitialCopy, Topoff1, BuildIndices, Topoff2, CopyLocalDocs, UpdateShardmap, WaitSourceClose, Topoff3, SourceDelete, StepCompleted,
	}
}

// place returns where a step is in the order, -1 for none.
func (s Step) place() int {
	for i, other := range steps() {
		if s == other {
			return i
		}
	}
	return -1
}

// after returns the step behind one.
func (s Step) after() Step {
	all := steps()
	return all[min(s.place()+1, len(all)-1)]
}

// Event is one entry of the history of a job.
type Event struct {
	Time   int64  `json:"time"` // unix seconds
	Type   State  `json:"type"`
	Detail string `json:"detail,omitempty"` // the step, or why; empty: neither
}

// Disabled is why jobs do not run while resharding is stopped everywhere.
const Disabled = "Shard splitting disabled"

// Source is the source of a job: a copy of a range on one node, or several that are merged.
type Source struct {
	Type       Type         `json:"type,omitempty"`
	Node       string       `json:"node"`
	Database   string       `json:"database"`
	DatabaseID [16]byte     `json:"database_id"`
	Suffix     string       `json:"suffix"`
	Range      ring.Range   `json:"range"`           // that all of it holds together
	Parts      []ring.Range `json:"parts,omitempty"` // the ranges that are merged; else none
	To         string       `json:"to,omitempty"`    // the node to which it is moved; else empty
	Copy       uint64       `json:"copy"`            // id of the copy from which the targets are made
}

// Name returns the name of the copy, of the first one that is merged.
func (s *Source) Name() string { return s.Sources()[0] }

// Sources returns the names of the copies that are there before, and not after.
func (s *Source) Sources() []string {
	if s.Type != Merge {
		return []string{s.name(s.Range)}
	}
	out := make([]string, len(s.Parts))
	for i, r := range s.Parts {
		out[i] = s.name(r)
	}
	return out
}

// Runner returns the node that works on it: the one where copies are made.
func (s *Source) Runner() string {
	if s.Type == Move {
		return s.To
	}
	return s.Node
}

// Meets reports whether two jobs have to do with a point of the ring on the same node.
func (s *Source) Meets(o *Source) bool {
	on := func(node string) bool { return node == s.Node || node == s.Runner() }
	return s.DatabaseID == o.DatabaseID && s.Range.Overlaps(o.Range) && (on(o.Node) || on(o.Runner()))
}

// targets returns the ranges of the copies that a job makes.
func (s *Source) targets() []ring.Range {
	if s.Type == Split {
		return Halves(s.Range)
	}
	return []ring.Range{s.Range}
}

func (s *Source) name(r ring.Range) string { return ring.CopyName(r, s.Database, s.Suffix) }

// Targets returns the names of the copies that a job makes.
func (s *Source) Targets() []string {
	var out []string
	for _, r := range s.targets() {
		out = append(out, s.name(r))
	}
	return out
}

// ID names the job: none that does anything else ever has the same.
func (s *Source) ID() string {
	text := s.Node + "\x00" + s.name(s.Range)
	if s.Type != Split {
		text += "\x00" + string(s.Type) + "\x00" + s.To
	}
	sum := sha256.Sum256([]byte(text))
	return "001-" + hex.EncodeToString(sum[:])
}

// Halves cuts a range in two, nil when it is too small.
func Halves(r ring.Range) []ring.Range {
	if r.Begin >= r.End {
		return nil
	}
	middle := r.Begin + (r.End-r.Begin)/2
	return []ring.Range{{Begin: r.Begin, End: middle}, {Begin: middle + 1, End: r.End}}
}

// Job is a split, a merge or a move.
type Job struct {
	Source

	State    State  `json:"state"`
	Step     Step   `json:"step"`
	Reason   string `json:"reason,omitempty"`   // of the state, for people
	Disabled bool   `json:"disabled,omitempty"` // stopped because resharding is: it goes on with that
	Removed  bool   `json:"removed,omitempty"`  // clients do not see it; the copies it has made are still to be given up
	Retries  int    `json:"retries,omitempty"`  // failures since something was done

	Started int64   `json:"started"` // unix seconds, as Updated
	Updated int64   `json:"updated"`
	History []Event `json:"history"`
}

// NewJob returns the job that does that.
func NewJob(of *Source, now int64) *Job {
	j := &Job{Source: *of, State: New, Step: StepNew, Started: now, Updated: now}
	j.note(now, 1)
	return j
}

// Ended reports whether nothing more is done unless an administrator asks for
// it.
func (j *Job) Ended() bool { return j.State == Completed || j.State == Failed }

// note adds where the job is to its history, which keeps the newest.
func (j *Job) note(now int64, history int) {
	e := Event{Time: now, Type: j.State, Detail: j.Reason}
	if j.State == Running && e.Detail == "" {
		e.Detail = string(j.Step)
	}
	j.Updated = now
	if n := len(j.History); n > 0 && j.History[n-1].Type == e.Type && j.History[n-1].Detail == e.Detail {
		return
	}
	j.History = append(j.History[:len(j.History):len(j.History)], e)
	if over := len(j.History) - max(history, 1); over > 0 {
		j.History = j.History[over:]
	}
}

// maxReason bounds what is kept of a reason, in bytes.
const maxReason = 1 << 10

func cut(reason string) string {
	reason = strings.ToValidUTF8(reason, "�")
	if len(reason) <= maxReason {
		return reason
	}
	n := maxReason
	for !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}
