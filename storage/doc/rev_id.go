package doc

import (
	"crypto/md5"
	"strconv"
)

// NewRevID derives the id of an interactive edit, 16 raw bytes, from (deleted,
// parent, body, and each attachment's name, type and digest) and nothing else,
// so that the same edit made through two nodes, or by CouchDB, is one revision.
// It is the MD5 of Erlang's external term [Deleted, Pos, Parent, Body, Atts].
// body is as ParseEnvelope or a store gives it; nil is an empty one.
func NewRevID(deleted bool, parent Rev, body []byte, atts []Attachment) string {
	var room [3 << 10]byte
	term := room[:0]
	if len(body) > len(room)/2 {
		term = make([]byte, 0, 2*len(body))
	}
	if body == nil {
		body = []byte("{}")
	}
	term = append(term, termVersion, termList, 0, 0, 0, 5)
	term = appendTermAtom(term, strconv.FormatBool(deleted))
	if parent.IsZero() {
		term = appendTermInt(appendTermInt(term, 0), 0)
	} else {
		term = appendTermBinary(appendTermInt(term, int64(parent.Pos)), parent.ID)
	}
	term = appendTerm(term, body)
	start := len(term)
	term = append(term, termList, 0, 0, 0, 0)
	for i := range atts {
		a := &atts[len(atts)-1-i]
		term = append(term, termSmallTuple, 3)
		term = appendTermBinary(term, a.Name)
		term = appendTermBinary(term, a.ContentType)
		term = appendTermBinary(term, a.Digest[:])
	}
	sum := md5.Sum(append(endList(term, start, len(atts)), termNil))
	return string(sum[:])
}
