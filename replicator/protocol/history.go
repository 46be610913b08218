package protocol

import (
	"strconv"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
)

// maxHistory is how many sessions a checkpoint remembers.
const maxHistory = 50

// record is a session in the history of a checkpoint.
type record struct {
	session  string
	recorded endpoint.Seq
	text     []byte // the record as JSON
}

// history is a checkpoint: the local document of a replication on one side.
type history struct {
	rev      string // empty: there is no document
	text     []byte // the document
	session  string
	last     endpoint.Seq
	sessions []record // newest first
}

// common returns the position that both sides know to have been reached, and
// the sessions up to there, newest first.
func common(source, target *history) (endpoint.Seq, []record) {
	if source.session == target.session && source.session != "" {
		return earlier(source.last, target.last), source.sessions
	}
	for i, s := range source.sessions {
		for _, t := range target.sessions {
			if s.session == t.session && s.session != "" {
				return earlier(s.recorded, t.recorded), source.sessions[i:]
			}
		}
	}
	return "", nil
}

// earlier returns what comes first of two positions that one session has
// written. They differ when it was cut off between both sides, or when one of
// them was restored from a copy.
func earlier(source, target endpoint.Seq) endpoint.Seq {
	if leading(target) < leading(source) {
		return target
	}
	return source
}

// leading returns the number that a position starts with. It does not order
// positions in general, but those of one source that lie far apart.
func leading(s endpoint.Seq) uint64 {
	var n uint64
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + uint64(c-'0')
		case c != '"' && c != '[':
			return n
		}
	}
	return n
}

// resume returns the figures that a session left.
func (r *record) resume(s *Stats) {
	for name, to := range map[string]*int64{
		"missing_checked": &s.RevisionsChecked, "missing_found": &s.MissingFound,
		"docs_read": &s.DocsRead, "docs_written": &s.DocsWritten, "doc_write_failures": &s.DocWriteFailures,
		"bulk_get_docs": &s.BulkGetDocs, "bulk_get_attempts": &s.BulkGetAttempts,
	} {
		*to, _ = strconv.ParseInt(string(doc.Lookup(r.text, name)), 10, 64)
	}
}

// session is this run as checkpoints tell about it.
type session struct {
	id    string
	began time.Time
	start endpoint.Seq
	older []record
	byIDs bool
}

// appendHistory appends the checkpoint of a session that has come to end.
func (s *session) appendHistory(dst []byte, end endpoint.Seq, stats *Stats, now time.Time) []byte {
	dst = append(dst, `{"session_id":`...)
	dst = doc.AppendString(dst, s.id)
	dst = appendSeq(dst, `,"source_last_seq":`, end)
	dst = append(dst, `,"replication_id_version":`...)
	dst = strconv.AppendInt(dst, spec.IDVersion, 10)
	if s.byIDs {
		// The first CouchDBs answered to a list of ids so.
		dst = s.appendTimes(dst, now)
		dst = stats.appendDocs(dst)
	}
	dst = append(dst, `,"history":[{"session_id":`...)
	dst = doc.AppendString(dst, s.id)
	dst = s.appendTimes(dst, now)
	dst = appendSeq(dst, `,"start_last_seq":`, s.start)
	dst = appendSeq(dst, `,"end_last_seq":`, end)
	dst = appendSeq(dst, `,"recorded_seq":`, end)
	dst = appendCount(dst, `,"missing_checked":`, stats.RevisionsChecked)
	dst = appendCount(dst, `,"missing_found":`, stats.MissingFound)
	dst = append(stats.appendDocs(dst), '}')
	for _, r := range s.older[:min(len(s.older), maxHistory-1)] {
		dst = append(append(dst, ','), r.text...)
	}
	return append(dst, "]}"...)
}

func (s *session) appendTimes(dst []byte, now time.Time) []byte {
	const rfc1123 = "Mon, 02 Jan 2006 15:04:05 GMT"
	dst = append(dst, `,"start_time":"`...)
	dst = s.began.UTC().AppendFormat(dst, rfc1123)
	dst = append(dst, `","end_time":"`...)
	dst = now.UTC().AppendFormat(dst, rfc1123)
	return append(dst, '"')
}

func (s *Stats) appendDocs(dst []byte) []byte {
	dst = appendCount(dst, `,"docs_read":`, s.DocsRead)
	dst = appendCount(dst, `,"docs_written":`, s.DocsWritten)
	dst = appendCount(dst, `,"doc_write_failures":`, s.DocWriteFailures)
	return s.appendBulkGet(dst)
}

func (s *Stats) appendBulkGet(dst []byte) []byte {
	dst = appendCount(dst, `,"bulk_get_docs":`, s.BulkGetDocs)
	return appendCount(dst, `,"bulk_get_attempts":`, s.BulkGetAttempts)
}

func appendCount(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

func appendSeq(dst []byte, name string, s endpoint.Seq) []byte {
	dst = append(dst, name...)
	if s == "" {
		return append(dst, '0')
	}
	return append(dst, s...)
}
