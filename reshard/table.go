package reshard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Records are values that all nodes agree on; *meta.RecordTable has them.
type Records interface {
	// Records returns those whose keys have a prefix, sorted by key.
	Records(prefix string) []meta.Record
	// PutRecord puts a value in the place of the one of that version, 0 where none is;
	// a nil value removes it. The error is fault.Conflict when another one is there.
	PutRecord(ctx context.Context, key string, value []byte, version uint64) (uint64, error)
	// RecordsChanged returns a channel that is closed at the next change.
	RecordsChanged() <-chan struct{}
}

// Map is the shard maps of databases; *meta.Meta has them.
type Map interface {
	Database(name string) (*meta.Database, bool)
	AddCopies(ctx context.Context, name string, id [16]byte, copies []ring.Addition) error
	ChangeCopies(ctx context.Context, changes []meta.CopyChange) error
	// CatchUp returns when this node knows what was agreed on before the call.
	CatchUp(ctx context.Context) error
	// Node returns a member of the cluster.
	Node(name string) (meta.Node, bool)
}

// Keys of records.
const (
	stateKey  = "reshard/state"
	jobPrefix = "reshard/job/"
)

// Table is the jobs of the cluster. It is safe for concurrent use.
type Table struct {
	records Records
	dbs     jobMap
	config  *config.Holder
}

// NewTable returns the table that is kept in records.
func NewTable(r Records, m Map, c *config.Holder) *Table {
	return &Table{records: r, dbs: jobMap{m}, config: c}
}

// State is whether jobs run, in the whole cluster.
type State struct {
	Stopped bool   `json:"stopped"`
	Reason  string `json:"reason,omitempty"` // why they are stopped
}

// State returns whether jobs run.
func (t *Table) State() State {
	s, _ := t.state()
	return s
}

func (t *Table) state() (s State, version uint64) {
	r, ok := t.record(stateKey)
	if !ok || json.Unmarshal(r.Value, &s) != nil {
		return State{}, r.Version
	}
	return s, r.Version
}

func (t *Table) record(key string) (meta.Record, bool) {
	for _, r := range t.records.Records(key) {
		if r.Key == key {
			return r, true
		}
	}
	return meta.Record{}, false
}

// entry is a job as it is kept.
type entry struct {
	id      string
	version uint64
	job     *job.Job
}

// entries returns all jobs, those that are removed too, ordered by id. What does not
// decode is of a newer version, and passed over.
func (t *Table) entries() []entry {
	records := t.records.Records(jobPrefix)
	out := make([]entry, 0, len(records))
	for _, r := range records {
		if j, err := job.Decode(r.Value); err == nil {
			out = append(out, entry{strings.TrimPrefix(r.Key, jobPrefix), r.Version, j})
		}
	}
	return out
}

// entry returns a job.
func (t *Table) entry(id string) (entry, bool) {
	if r, ok := t.record(jobPrefix + id); ok {
		if j, err := job.Decode(r.Value); err == nil {
			return entry{id, r.Version, j}, true
		}
	}
	return entry{}, false
}

// visible reports whether a job can be seen. One that was removed cannot, nor one whose database was deleted: the
// records of both are forgotten by the node that works on them.
func (t *Table) visible(j *job.Job) bool {
	_, there := t.dbs.database(j)
	return there && !j.Removed
}

// Jobs returns the jobs of all nodes, the oldest first.
func (t *Table) Jobs() []*job.Job {
	var out []*job.Job
	for _, e := range t.entries() {
		if t.visible(e.job) {
			out = append(out, e.job)
		}
	}
	slices.SortStableFunc(out, func(a, b *job.Job) int { return cmp.Compare(a.Started, b.Started) })
	return out
}

// Job returns a job; fault.NotFound when there is none.
func (t *Table) Job(ctx context.Context, id string) (*job.Job, error) {
	e, err := t.require(ctx, id)
	return e.job, err
}

// require returns a job that one can see. Another node may have made it a moment ago.
func (t *Table) require(ctx context.Context, id string) (entry, error) {
	e, ok := t.entry(id)
	if !ok {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = t.dbs.CatchUp(soon) // without a leader it stays as it is
		e, ok = t.entry(id)
	}
	if !ok || !t.visible(e.job) {
		return entry{}, errMissing()
	}
	return e, nil
}

func errMissing() error { return fault.New(fault.NotFound, "missing") }

// put writes a job in the place of what it was.
func (t *Table) put(ctx context.Context, e *entry) error {
	value, err := e.job.Encode()
	if err != nil {
		return err
	}
	version, err := t.records.PutRecord(ctx, jobPrefix+e.id, value, e.version)
	if err != nil {
		return fmt.Errorf("keep job: %w", err)
	}
	e.version = version
	return nil
}

// maxTries is how often a change is decided anew that another one comes before.
const maxTries = 20

// retry calls f until it finds what it was decided on.
func retry(f func() error) error {
	for range maxTries {
		if err := f(); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "The job changes all the time.")
}

// change changes a job that one can see; f reports whether there is anything to change.
func (t *Table) change(ctx context.Context, id string, f func(j *job.Job) (changed bool, err error)) error {
	return retry(func() error {
		e, err := t.require(ctx, id)
		if err != nil {
			return err
		}
		changed, err := f(e.job)
		if err != nil || !changed {
			return err
		}
		return t.put(ctx, &e)
	})
}

// history is how many entries of the history of a job are kept.
func (t *Table) history() int { return t.config.Load().Reshard.MaxHistory }

// ErrStopped says that no job runs while resharding is stopped.
var ErrStopped = errors.New("stopped")
