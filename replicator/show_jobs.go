package replicator

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"divan/replicator/protocol"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
)

// All returns the jobs of this node in the order of their ids.
func (s *Jobs) All() []Row {
	var rows []Row
	for _, queued := range s.runner.Jobs() {
		rows = append(rows, Row{ID: queued.ID, JSON: s.appendJob(nil, jobOf(queued))})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// Get returns the job with an id; false when this node has none.
func (s *Jobs) Get(id string) (Row, bool) {
	j := s.get(id)
	if j == nil {
		return Row{}, false
	}
	return Row{ID: id, JSON: s.appendJob(nil, j)}, true
}

// appendJob appends a job as _scheduler/jobs shows it.
func (s *Jobs) appendJob(dst []byte, j *job) []byte {
	state := s.runner.State(&j.Job)
	o := object{}
	pid, database, docID, user := "", "", "", ""
	if state.Running {
		pid = j.pid()
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
	o.text("node", s.meta.Self())
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

// AppendTasks appends the replications that run as _active_tasks shows them, each
// with a comma in front when something is there already.
func (s *Jobs) AppendTasks(dst []byte) []byte {
	for _, queued := range s.runner.Jobs() {
		j := jobOf(queued)
		stats, since, _ := j.figures()
		if since.IsZero() {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s.task(j, &stats, since)...)
	}
	return dst
}

func (s *Jobs) task(j *job, stats *protocol.Stats, since time.Time) []byte {
	o := object{}
	database, docID := "", ""
	if j.doc != nil {
		database, docID = j.doc.key.db, j.doc.key.id
	}
	o.text("node", s.meta.Self())
	o.text("pid", j.pid())
	o.seq("checkpointed_source_seq", stats.CheckpointedSeq)
	o.count("checkpoint_interval", j.spec.CheckpointInterval.Milliseconds())
	o.raw("continuous", strconv.AppendBool(nil, j.spec.Continuous))
	o.orNull("database", database)
	o.orNull("doc_id", docID)
	o.count("doc_write_failures", stats.DocWriteFailures)
	o.count("docs_read", stats.DocsRead)
	o.count("docs_written", stats.DocsWritten)
	o.count("bulk_get_attempts", stats.BulkGetAttempts)
	o.count("bulk_get_docs", stats.BulkGetDocs)
	o.pending(stats)
	o.count("missing_revisions_found", stats.MissingFound)
	o.text("replication_id", j.ID)
	o.count("revisions_checked", stats.RevisionsChecked)
	o.text("source", spec.Mask(j.spec.Source.URL))
	o.seq("source_seq", stats.SourceSeq)
	o.count("started_on", since.Unix())
	o.text("target", spec.Mask(j.spec.Target.URL))
	o.seq("through_seq", stats.ThroughSeq)
	o.text("type", "replication")
	o.count("updated_on", time.Now().Unix())
	o.orNull("user", j.spec.User.Name)
	return append(o.out, '}')
}
