package remote

import (
	"bytes"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// row is one object of a changes feed: a change, or what ends the feed.
type row struct {
	seq, id, changes []byte // raw values
	lastSeq          []byte
	pending          []byte
	err              []byte
}

// errRow is the error of a row that is none.
func errRow(text []byte) error {
	const shown = 200
	return fault.Newf(fault.Unavailable, "the changes feed has a row that is none: %.*q", shown, text)
}

// parseRow finds the members of a row. Its brackets are matched already.
func parseRow(text []byte) (row, bool) {
	var r row
	ok := scanMembers(text, func(name, value []byte) {
		switch string(name) {
		case "seq":
			r.seq = value
		case "id":
			r.id = value
		case "changes":
			r.changes = value
		case "last_seq":
			r.lastSeq = value
		case "pending":
			r.pending = value
		case "error":
			r.err = value
		}
	})
	return r, ok
}

// scanMembers calls fn for the members of an object whose brackets are
// matched. It checks no more than it needs: the values are looked at later.
func scanMembers(text []byte, fn func(name, value []byte)) bool {
	i, end := 1, len(text)-1
	if end < 1 || text[0] != '{' {
		return false
	}
	for {
		for i < end && (text[i] == ',' || space(text[i])) {
			i++
		}
		if i >= end {
			return true
		}
		if text[i] != '"' {
			return false
		}
		next, closed := closing(text[:end], i+1)
		if !closed {
			return false
		}
		name := text[i+1 : next-1]
		for i = next; i < end && space(text[i]); i++ {
		}
		if i >= end || text[i] != ':' {
			return false
		}
		for i++; i < end && space(text[i]); i++ {
		}
		next = valueEnd(text[:end], i)
		if next == i {
			return false
		}
		fn(name, text[i:next])
		i = next
	}
}

// scanElements is scanMembers for arrays; fn returns false to end it.
func scanElements(text []byte, fn func(value []byte) bool) bool {
	i, end := 1, len(text)-1
	if end < 1 || text[0] != '[' {
		return false
	}
	for {
		for i < end && (text[i] == ',' || space(text[i])) {
			i++
		}
		if i >= end {
			return true
		}
		next := valueEnd(text[:end], i)
		if next == i || !fn(text[i:next]) {
			return false
		}
		i = next
	}
}

// valueEnd returns where the value at text[i] ends; i when there is none.
func valueEnd(text []byte, i int) int {
	depth := 0
	for k := i; k < len(text); k++ {
		switch c := text[k]; c {
		case '"':
			next, closed := closing(text, k+1)
			if !closed {
				return i
			}
			if depth == 0 {
				return next
			}
			k = next - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return k + 1
			}
			if depth < 0 {
				return k
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return k
			}
		}
	}
	if depth > 0 {
		return i
	}
	return len(text)
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// change makes a change of a row; its revisions are appended to revs, which is
// returned. Neither aliases the row.
func (r *row) change(c *endpoint.Change, revs []doc.Rev) ([]doc.Rev, bool) {
	id, ok := doc.Unquote(r.id)
	if !ok || id == "" {
		return revs, false
	}
	from := len(revs)
	ok = scanElements(r.changes, func(value []byte) bool {
		var rev []byte
		if !scanMembers(value, func(name, v []byte) {
			if string(name) == "rev" {
				rev = v
			}
		}) {
			return false
		}
		text, ok := doc.Unquote(rev)
		if !ok {
			return false
		}
		parsed, err := doc.ParseRev(text)
		revs = append(revs, parsed)
		return err == nil
	})
	seq, valid := seqOf(r.seq)
	*c = endpoint.Change{ID: id, Revs: revs[from:len(revs):len(revs)], Seq: seq}
	return revs, ok && valid
}

// maxSeq bounds a sequence, in bytes: it is kept in checkpoints.
const maxSeq = 64 << 10

// seqOf returns a sequence as it stands in a feed, empty for null and for none.
// It becomes a part of documents and answers, so what is too long or no JSON is
// not valid.
func seqOf(value []byte) (seq endpoint.Seq, valid bool) {
	if len(value) == 0 || bytes.Equal(value, []byte("null")) {
		return "", true
	}
	if len(value) > maxSeq {
		return "", false
	}
	if _, err := doc.Canonical(nil, value); err != nil {
		return "", false
	}
	return endpoint.Seq(value), true
}
