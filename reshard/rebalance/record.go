package rebalance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// recordKey is the key of the record.
const recordKey = "reshard/rebalance"

// State is the state of a rebalance.
type State string

// The states. In all but Running nothing more is begun; what has begun comes to its end.
const (
	Running   State = "running"
	Stopped   State = "stopped"
	Completed State = "completed"
	Cancelled State = "cancelled"
)

// Record is the rebalance that was asked for last.
type Record struct {
	ID          string `json:"id"`
	State       State  `json:"state"`
	Reason      string `json:"reason,omitempty"`       // of the state, for people
	LeavingOnly bool   `json:"leaving_only,omitempty"` // only what has to leave its node is moved
	Started     int64  `json:"started"`                // unix seconds, as Updated
	Updated     int64  `json:"updated"`

	Planned Sum `json:"planned"` // when it was last planned: what had ended, what was under way, and what was left to move
	Moved   Sum `json:"moved"`
	Failed  Sum `json:"failed"`
	Waiting int `json:"waiting,omitempty"` // copies that have to leave their nodes, and cannot yet

	Batch    []Item    `json:"batch,omitempty"`    // under way
	Refused  string    `json:"refused,omitempty"`  // why moves of the last plan were not begun
	Failures []Failure `json:"failures,omitempty"` // the newest
	Left     []LeftSum `json:"left,omitempty"`     // what stays as it should not be, as of the last plan
	Avoid    []string  `json:"avoid,omitempty"`    // keys of moves that have failed
	Asked    int       `json:"asked,omitempty"`    // times that something was asked for meanwhile
	Members  []string  `json:"members,omitempty"`  // those that took copies when nodes were last made equally full
}

// Sum counts copies.
type Sum struct {
	Copies int   `json:"copies"`
	Bytes  int64 `json:"bytes"`
}

func (s *Sum) add(bytes int64) {
	s.Copies++
	s.Bytes += bytes
}

// Item is a move that is under way.
type Item struct {
	Database string     `json:"db"`
	Suffix   string     `json:"suffix"` // of its copies' names
	Range    ring.Range `json:"range"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	Bytes    int64      `json:"bytes"`
	Lost     bool       `json:"lost,omitempty"` // From is no member any more: there is no job
}

// JobID returns the id of the job that moves it.
func (i *Item) JobID() string {
	s := job.Source{Type: job.Move, Node: i.From, Database: i.Database, Suffix: i.Suffix, Range: i.Range, To: i.To}
	return s.ID()
}

// Failure is a move that has failed.
type Failure struct {
	Item
	Reason string `json:"reason"`
}

// LeftSum is the sum of the copies that stay for one reason.
type LeftSum struct {
	Why string `json:"why"`
	Sum
}

// Bounds of what is kept in a record, which is at most 64 KB.
const (
	maxFailures    = 20
	maxFailed      = 300 // after that many it is given up
	keyLength      = 12
	maxBatchBytes  = 40 << 10
	maxReasonBytes = 300
	maxRecordBytes = 60 << 10
)

// ErrRunning says that a rebalance is under way.
var ErrRunning = fault.New(fault.Conflict, "A rebalance is under way. When it is not stopped, it takes what has changed into account by itself; see GET /_cluster/rebalance.")

// stored is the record as it is kept.
type stored struct {
	*Record // nil: none yet
	version uint64
}

func (r *Rebalancer) load() stored {
	for _, rec := range r.o.Records.Records(recordKey) {
		if rec.Key != recordKey {
			continue
		}
		out := &Record{}
		if json.Unmarshal(rec.Value, out) != nil {
			return stored{version: rec.Version} // of a newer version
		}
		return stored{out, rec.Version}
	}
	return stored{}
}

// save writes the record in the place of what it was. The error is fault.Conflict when that was changed
// meanwhile.
func (r *Rebalancer) save(ctx context.Context, s *stored) error {
	s.Updated = time.Now().Unix()
	value, err := json.Marshal(s.Record)
	for ; err == nil && len(value) > maxRecordBytes && len(s.Failures) > 0; value, err = json.Marshal(s.Record) {
		s.Failures = s.Failures[1:] // what is quoted takes more than it is long
	}
	if err != nil {
		return err
	}
	version, err := r.o.Records.PutRecord(ctx, recordKey, value, s.version)
	if err != nil {
		return fmt.Errorf("keep the state of the rebalance: %w", err)
	}
	s.version = version
	return nil
}

// Record returns the rebalance that was asked for last; false when none ever was.
func (r *Rebalancer) Record() (*Record, bool) {
	s := r.load()
	return s.Record, s.Record != nil
}

// Start begins a rebalance; ErrRunning when one is under way or stopped. One that only moves what has to leave
// its node becomes one that moves all. Any node may be asked: the leader does it.
func (r *Rebalancer) Start(ctx context.Context, leavingOnly bool, reason string) (*Record, error) {
	if err := r.Refusal(); err != nil {
		return nil, err
	}
	under := false
	rec, err := r.alter(ctx, func(s *stored) error {
		under = false
		switch {
		case s.Record == nil || s.State == Completed || s.State == Cancelled:
			next := &Record{ID: newID(), State: Running, Reason: reason, LeavingOnly: leavingOnly, Started: time.Now().Unix()}
			if s.Record != nil {
				next.Batch, next.Members = s.Batch, s.Members // what is under way still
			}
			s.Record = next
		case s.State == Running && s.LeavingOnly && !leavingOnly:
			s.LeavingOnly, s.Reason = false, reason
		default: // the leader may be about to end it by what it knew before
			under = true
			s.Asked++
		}
		return nil
	})
	if err == nil && under {
		err = ErrRunning
	}
	return rec, err
}

// Refusal returns why nothing can be moved.
func (r *Rebalancer) Refusal() error {
	if behind := r.o.Behind(); len(behind) > 0 {
		return fault.Newf(fault.Conflict, "Shards are moved when all nodes run a version that knows that; it waits for %s.", strings.Join(behind, ", "))
	}
	return nil
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// errNoRebalance says that there is nothing to stop or resume.
func errNoRebalance() error { return fault.New(fault.NotFound, "No rebalance was ever asked for.") }

// Stop has a rebalance begin nothing more; what is under way comes to its end.
func (r *Rebalancer) Stop(ctx context.Context, reason string) error {
	_, err := r.alter(ctx, func(s *stored) error { return s.become(Stopped, reason, Running, Stopped) })
	return err
}

// Resume has a stopped rebalance go on.
func (r *Rebalancer) Resume(ctx context.Context) error {
	_, err := r.alter(ctx, func(s *stored) error { return s.become(Running, "", Stopped, Running) })
	return err
}

// Cancel ends a rebalance. The leader gives up the moves that are under way where that can be.
func (r *Rebalancer) Cancel(ctx context.Context, reason string) error {
	_, err := r.alter(ctx, func(s *stored) error {
		if s.Record != nil && s.State != Completed {
			s.Members = r.takers() // what is cancelled does not begin by itself again
		}
		return s.become(Cancelled, reason, Running, Stopped, Cancelled)
	})
	return err
}

// become changes the state if it is one of some.
func (s *stored) become(next State, reason string, from ...State) error {
	switch {
	case s.Record == nil:
		return errNoRebalance()
	case !slices.Contains(from, s.State):
		return fault.Newf(fault.Conflict, "The rebalance has ended: it is %s.", s.State)
	}
	s.State, s.Reason = next, cut(reason)
	return nil
}

// maxTries is how often a change is decided anew that another one comes before.
const maxTries = 20

// alter changes the record.
func (r *Rebalancer) alter(ctx context.Context, f func(s *stored) error) (*Record, error) {
	for range maxTries {
		s := r.load()
		if err := f(&s); err != nil {
			return nil, err
		}
		if err := r.save(ctx, &s); !fault.Is(err, fault.Conflict) {
			return s.Record, err
		}
	}
	return nil, fault.New(fault.Unavailable, "The rebalance changes all the time.")
}

// takers returns the members that take copies, sorted.
func (r *Rebalancer) takers() []string {
	var out []string
	for _, n := range r.o.Group.Nodes() {
		if !n.Draining {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}
