package protocol

import (
	"bytes"

	"divan/replicator/endpoint"
	"divan/storage/doc"
)

// What is kept of a checkpoint, which is for as long as the run goes on: sessions, those
// of both sides are compared with each other, and there are 50 as a rule; bytes of them;
// of a sequence, and of another text.
const (
	maxSessions     = 500
	maxHistoryBytes = 256 << 10
	maxSeqBytes     = 64 << 10
	maxTextBytes    = 256
)

// parseHistory reads a checkpoint. What is not in it is left empty. The document is
// another server's, and becomes a part of answers and of checkpoints on both sides: only
// the members that checkpoints have are taken, each with a value as it has there.
func parseHistory(body []byte, rev string) (history, error) {
	h := history{rev: rev}
	canonical, err := doc.Canonical(nil, body)
	if err != nil {
		return h, err
	}
	h.text, err = appendKnown(nil, canonical, func(dst []byte, name string, value []byte) ([]byte, error) {
		if name != "history" {
			return appendFact(dst, name, value), nil
		}
		if !doc.IsArray(value) {
			return dst, nil // a document of another program
		}
		return h.appendSessions(append(dst, `,"history":`...), value)
	})
	if err != nil {
		return h, err
	}
	h.session, _ = doc.Unquote(doc.Lookup(h.text, "session_id"))
	h.last = seqOf(doc.Lookup(h.text, "source_last_seq"))
	return h, nil
}

// appendSessions appends the sessions of a list that are ones, and remembers them.
func (h *history) appendSessions(dst, list []byte) ([]byte, error) {
	dst = append(dst, '[')
	size := 0
	err := doc.EachElement(list, func(value []byte) error {
		if len(h.sessions) == maxSessions || size > maxHistoryBytes || !doc.IsObject(value) {
			return nil
		}
		text, err := appendKnown(nil, value, func(dst []byte, name string, v []byte) ([]byte, error) {
			return appendFact(dst, name, v), nil
		})
		if err != nil {
			return err
		}
		if size += len(text); size > maxHistoryBytes {
			return nil
		}
		if len(h.sessions) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, text...)
		id, _ := doc.Unquote(doc.Lookup(text, "session_id"))
		h.sessions = append(h.sessions, record{id, seqOf(doc.Lookup(text, "recorded_seq")), text})
		return nil
	})
	return append(dst, ']'), err
}

// appendKnown appends an object of what take appends for the members of another one, each
// with a comma in front.
func appendKnown(dst, object []byte, take func(dst []byte, name string, value []byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	err := doc.EachMember(object, func(name string, value []byte) (err error) {
		dst, err = take(dst, name, value)
		return err
	})
	if len(dst) == start {
		return append(dst, "{}"...), err
	}
	dst[start] = '{'
	return append(dst, '}'), err
}

// appendFact appends a member that checkpoints have beside their sessions, or sessions
// have, if its value is of the kind that it has there.
func appendFact(dst []byte, name string, value []byte) []byte {
	good := false
	switch name {
	case "session_id", "start_time", "end_time":
		good = isText(value)
	case "source_last_seq", "start_last_seq", "end_last_seq", "recorded_seq":
		good = isSeq(value)
	case "replication_id_version", "missing_checked", "missing_found", "docs_read", "docs_written", "doc_write_failures",
		"bulk_get_docs", "bulk_get_attempts":
		good = isCount(value)
	}
	if !good {
		return dst
	}
	dst = append(doc.AppendString(append(dst, ','), name), ':')
	return append(dst, value...)
}

func isText(value []byte) bool { return len(value) <= maxTextBytes && value[0] == '"' }

func isCount(value []byte) bool {
	const digits = 18 // what fits into an int64
	return len(value) <= digits && len(bytes.Trim(value, "0123456789")) == 0
}

// isSeq reports whether a value may be a position: a text, a number, or an array of those
// as BigCouch had them.
func isSeq(value []byte) bool {
	if len(value) > maxSeqBytes {
		return false
	}
	if !doc.IsArray(value) {
		return isScalar(value)
	}
	scalars := true
	err := doc.EachElement(value, func(v []byte) error {
		scalars = scalars && isScalar(v)
		return nil
	})
	return scalars && err == nil
}

func isScalar(value []byte) bool {
	c := value[0]
	return c == '"' || c == '-' || '0' <= c && c <= '9'
}

// seqOf reads a sequence; the beginning is written as 0.
func seqOf(value []byte) endpoint.Seq {
	if s := string(value); s != "0" && s != "null" {
		return endpoint.Seq(s)
	}
	return ""
}
