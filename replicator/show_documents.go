package replicator

import (
	"time"

	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/storage/doc"
)

// The states of documents whose replication some node runs, or is to run.
const (
	Initializing  = "initializing"
	stateError    = "error"
	statePending  = "pending"
	stateRunning  = "running"
	stateCrashing = "crashing"
)

// States are those that a document may have, as they are listed in a refusal.
func States() []string {
	return []string{Initializing, stateError, stateRunning, statePending, stateCrashing, Completed, Failed}
}

// Of returns the documents of a replicator database whose replications
// this node runs, in no order.
func (s *Documents) Of(db string) []Row {
	var rows []Row
	for _, d := range s.ofDatabase(db) {
		rows = append(rows, s.row(d))
	}
	return rows
}

// Get returns such a document; false when it is not this node's.
func (s *Documents) Get(db, id string) (Row, bool) {
	s.mu.Lock()
	d := s.mu.docs[docKey{db, id}]
	s.mu.Unlock()
	if d == nil {
		return Row{}, false
	}
	return s.row(d), true
}

// row is a document as _scheduler/docs shows it.
func (s *Documents) row(d *document) Row {
	s.mu.Lock()
	j, attempts, reason, updated := d.job, d.attempts, d.reason, d.updated
	s.mu.Unlock()
	row := Row{ID: d.key.id, State: Initializing}
	id, info, started := "", []byte("null"), d.began
	crashes := attempts
	switch {
	case j != nil:
		state := s.jobs.runner.State(&j.Job)
		id, info, started = j.ID, j.info(), j.began
		row.State, crashes, reason, updated = stateName(&state), state.Crashes, state.Reason, state.LastUpdated()
	case attempts > 0:
		row.State = stateError
	}
	if reason != "" {
		info = errorInfo(reason)
	}
	o := object{}
	o.text("database", d.key.db)
	o.text("doc_id", d.key.id)
	o.orNull("id", id)
	o.text("node", s.meta.Self())
	o.text("source", spec.Mask(d.spec.Source.URL))
	o.text("target", spec.Mask(d.spec.Target.URL))
	o.text("state", row.State)
	o.raw("info", info)
	o.count("error_count", int64(crashes))
	o.orNull("last_updated", timeOf(updated))
	o.text("start_time", timestamp(started))
	o.proxy("source_proxy", d.spec.Source.Proxy)
	o.proxy("target_proxy", d.spec.Target.Proxy)
	row.JSON = append(o.out, '}')
	return row
}

func errorInfo(reason string) []byte {
	return append(doc.AppendString([]byte(`{"error":`), reason), '}')
}

// timeOf prints a time, nothing for none.
func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return timestamp(t)
}

func stateName(s *scheduler.State) string {
	switch {
	case s.Running:
		return stateRunning
	case s.Crashing:
		return stateCrashing
	default:
		return statePending
	}
}
