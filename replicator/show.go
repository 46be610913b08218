package replicator

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/protocol"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/storage/doc"
)

// Row is a job or a document as _scheduler shows it.
type Row struct {
	ID    string // of the replication, or of the document
	State string // of a document
	JSON  []byte
}

// Jobs returns the jobs of this node in the order of their ids.
func (r *Replicator) Jobs() []Row {
	var rows []Row
	for _, s := range r.runner.Jobs() {
		rows = append(rows, Row{ID: s.ID, JSON: r.appendJob(nil, jobOf(s))})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// Job returns the job with an id; false when this node has none.
func (r *Replicator) Job(id string) (Row, bool) {
	j := jobOf(r.runner.Get(id))
	if j == nil {
		return Row{}, false
	}
	return Row{ID: id, JSON: r.appendJob(nil, j)}, true
}

// object appends the members of a JSON object.
type object struct{ out []byte }

func (o *object) name(name string) {
	before := byte(',')
	if len(o.out) == 0 {
		before = '{'
	}
	o.out = append(doc.AppendString(append(o.out, before), name), ':')
}

// raw adds a member whose value is JSON.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.out = append(o.out, value...)
}

func (o *object) text(name, value string) {
	o.name(name)
	o.out = doc.AppendString(o.out, value)
}

// orNull adds a text, or null for an empty one.
func (o *object) orNull(name, value string) {
	if value == "" {
		o.raw(name, []byte("null"))
		return
	}
	o.text(name, value)
}

func (o *object) count(name string, n int64) {
	o.name(name)
	o.out = strconv.AppendInt(o.out, n, 10)
}

// proxy adds the URL of a proxy without its password.
func (o *object) proxy(name, value string) {
	if value != "" {
		value = spec.MaskProxy(value)
	}
	o.orNull(name, value)
}

// pid is a name for what runs a job, for clients that expect one.
func (r *Replicator) pid(j *job) string {
	return "<0." + strconv.FormatUint(uint64(j.began.UnixNano())%1_000_000, 10) + ".0>"
}

// appendJob appends a job as _scheduler/jobs shows it.
func (r *Replicator) appendJob(dst []byte, j *job) []byte {
	state := r.runner.State(&j.Job)
	o := object{}
	pid, database, docID, user := "", "", "", ""
	if state.Running {
		pid = r.pid(j)
	}
	if j.doc != nil {
		database, docID = j.doc.key.db, j.doc.key.id
	} else {
		user = j.spec.User.Name
	}
	o.orNull("database", database)
	o.text("id", j.ID)
	o.orNull("pid", pid)
	o.text("source", spec.Mask(j.spec.Source.URL))
	o.text("target", spec.Mask(j.spec.Target.URL))
	o.orNull("user", user)
	o.orNull("doc_id", docID)
	o.raw("info", j.info())
	o.raw("history", appendHistory(nil, state.History))
	o.text("node", r.o.Meta.Self())
	o.text("start_time", timestamp(j.began))
	return append(append(dst, o.out...), '}')
}

// info is the figures of a job as JSON, null when there are none.
func (j *job) info() []byte {
	s, _, ok := j.figures()
	if !ok {
		return []byte("null")
	}
	return appendInfo(nil, &s, true)
}

// appendInfo appends figures; with where a run is, or without.
func appendInfo(dst []byte, s *protocol.Stats, where bool) []byte {
	o := object{}
	o.count("revisions_checked", s.RevisionsChecked)
	o.count("missing_revisions_found", s.MissingFound)
	o.count("docs_read", s.DocsRead)
	o.count("docs_written", s.DocsWritten)
	o.pending(s)
	o.count("doc_write_failures", s.DocWriteFailures)
	o.count("bulk_get_docs", s.BulkGetDocs)
	o.count("bulk_get_attempts", s.BulkGetAttempts)
	o.seq("checkpointed_source_seq", s.CheckpointedSeq)
	if where {
		o.seq("source_seq", s.SourceSeq)
		o.seq("through_seq", s.ThroughSeq)
	}
	return append(append(dst, o.out...), '}')
}

func (o *object) pending(s *protocol.Stats) {
	if s.ChangesPending < 0 {
		o.raw("changes_pending", []byte("null"))
		return
	}
	o.count("changes_pending", s.ChangesPending)
}

// seq adds a position, always as a string (api.md section 20, row 7): sources before
// CouchDB 2.0 have numbers; "0" is the beginning.
func (o *object) seq(name string, s endpoint.Seq) {
	switch {
	case s == "":
		o.text(name, "0")
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
		o.text(name, string(s))
	default:
		o.raw(name, []byte(s))
	}
}

// appendHistory appends events, the newest first.
func appendHistory(dst []byte, events []scheduler.Event) []byte {
	dst = append(dst, '[')
	for i, e := range slices.Backward(events) {
		if i < len(events)-1 {
			dst = append(dst, ',')
		}
		o := object{}
		o.text("timestamp", timestamp(e.Time))
		o.text("type", e.Type.String())
		if e.Reason != "" {
			o.text("reason", e.Reason)
		}
		dst = append(append(dst, o.out...), '}')
	}
	return append(dst, ']')
}

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

// Documents returns the documents of a replicator database whose replications
// this node runs, in no order.
func (r *Replicator) Documents(db string) []Row {
	var rows []Row
	for _, d := range r.documents(db) {
		rows = append(rows, r.row(d))
	}
	return rows
}

// Document returns such a document; false when it is not this node's.
func (r *Replicator) Document(db, id string) (Row, bool) {
	r.mu.Lock()
	d := r.mu.docs[docKey{db, id}]
	r.mu.Unlock()
	if d == nil {
		return Row{}, false
	}
	return r.row(d), true
}

// row is a document as _scheduler/docs shows it.
func (r *Replicator) row(d *document) Row {
	r.mu.Lock()
	j, attempts, reason, updated := d.job, d.attempts, d.reason, d.updated
	r.mu.Unlock()
	row := Row{ID: d.key.id, State: Initializing}
	id, info, started := "", []byte("null"), d.began
	crashes := attempts
	switch {
	case j != nil:
		state := r.runner.State(&j.Job)
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
	o.text("node", r.o.Meta.Self())
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

// Stored returns a row for a document whose replication no node runs. Its body tells whether the
// replication has ended; if not, no node has seen the document yet.
func Stored(db, id string, body []byte) Row {
	text := func(name string) string {
		value, _ := doc.Unquote(doc.Lookup(body, name))
		return value
	}
	row := Row{ID: id, State: text("_replication_state")}
	failures, info, started := int64(0), []byte("null"), ""
	switch row.State {
	case Failed:
		failures, info = 1, errorInfo(text("_replication_state_reason"))
	case Completed:
		info, started = storedInfo(doc.Lookup(body, "_replication_stats"))
	default:
		row.State = Initializing
	}
	o := object{}
	o.text("database", db)
	o.text("doc_id", id)
	o.raw("id", []byte("null"))
	o.orNull("source", storedURL(doc.Lookup(body, "source")))
	o.orNull("target", storedURL(doc.Lookup(body, "target")))
	o.text("state", row.State)
	o.count("error_count", failures)
	o.raw("info", info)
	o.orNull("start_time", started)
	o.orNull("last_updated", text("_replication_state_time"))
	row.JSON = append(o.out, '}')
	return row
}

// storedInfo takes the figures that a document has apart.
func storedInfo(stats []byte) (info []byte, started string) {
	if !doc.IsObject(stats) {
		return []byte("null"), ""
	}
	o := object{}
	_ = doc.EachMember(stats, func(name string, value []byte) error { // what is stored is well-formed
		if name == "start_time" {
			started, _ = doc.Unquote(value)
			return nil
		}
		o.raw(name, value)
		return nil
	})
	if o.out == nil {
		return []byte("{}"), started
	}
	return append(o.out, '}'), started
}

// storedURL is the masked URL of a side of a document.
func storedURL(value []byte) string {
	text, ok := doc.Unquote(value)
	if !ok {
		text, _ = doc.Unquote(doc.Lookup(value, "url"))
	}
	if text == "" {
		return ""
	}
	return spec.Mask(text)
}

// AppendTasks appends the replications that run as _active_tasks shows them, each
// with a comma in front when something is there already.
func (r *Replicator) AppendTasks(dst []byte) []byte {
	for _, s := range r.runner.Jobs() {
		j := jobOf(s)
		stats, since, _ := j.figures()
		if since.IsZero() {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.task(j, &stats, since)...)
	}
	return dst
}

func (r *Replicator) task(j *job, s *protocol.Stats, since time.Time) []byte {
	o := object{}
	database, docID := "", ""
	if j.doc != nil {
		database, docID = j.doc.key.db, j.doc.key.id
	}
	o.text("node", r.o.Meta.Self())
	o.text("pid", r.pid(j))
	o.seq("checkpointed_source_seq", s.CheckpointedSeq)
	o.count("checkpoint_interval", j.spec.CheckpointInterval.Milliseconds())
	o.raw("continuous", strconv.AppendBool(nil, j.spec.Continuous))
	o.orNull("database", database)
	o.orNull("doc_id", docID)
	o.count("doc_write_failures", s.DocWriteFailures)
	o.count("docs_read", s.DocsRead)
	o.count("docs_written", s.DocsWritten)
	o.count("bulk_get_attempts", s.BulkGetAttempts)
	o.count("bulk_get_docs", s.BulkGetDocs)
	o.pending(s)
	o.count("missing_revisions_found", s.MissingFound)
	o.text("replication_id", j.ID)
	o.count("revisions_checked", s.RevisionsChecked)
	o.text("source", spec.Mask(j.spec.Source.URL))
	o.seq("source_seq", s.SourceSeq)
	o.count("started_on", since.Unix())
	o.text("target", spec.Mask(j.spec.Target.URL))
	o.seq("through_seq", s.ThroughSeq)
	o.text("type", "replication")
	o.count("updated_on", time.Now().Unix())
	o.orNull("user", j.spec.User.Name)
	return append(o.out, '}')
}
