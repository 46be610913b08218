package doc

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"divan/storage/fault"
)

// Envelope is a client's document taken apart: its underscore members, and the
// rest as canonical text.
type Envelope struct {
	ID    string
	HasID bool // the text has an _id

	Rev     Rev // of _rev
	HasRev  bool
	RevText string // _rev as the client wrote it

	Deleted bool

	Revisions    Path // of _revisions, when that names any
	HasRevisions bool

	Atts    []AttachmentSpec
	HasAtts bool // the text has _attachments, be it empty

	// Body is the canonical text of the object without underscore members;
	// _access and the members of replication documents count as ordinary ones
	// and stay. "{}" when nothing is left.
	Body []byte
}

// Path returns the history the client names: _revisions when it is there, else
// the one revision of _rev, else an empty path.
func (e *Envelope) Path() Path {
	switch {
	case e.HasRevisions:
		return e.Revisions
	case e.HasRev:
		return Path{Start: e.Rev.Pos, IDs: []string{e.Rev.ID}}
	}
	return Path{}
}

// ParseEnvelope reads a client's document in one pass. The errors have the
// kinds and texts of CouchDB (api.md 9.6, golden docs/09): malformed JSON
// first, otherwise the first refused underscore member. Of an underscore
// member that occurs twice the last one counts; other members that occur twice
// all stay in the body, where readers take the last one.
//
// The result does not alias text, except for AttachmentSpec.Data.
func ParseEnvelope(text []byte) (Envelope, error) {
	p := envelopeParser{scanner: scanner{src: text}}
	if p.space() != '{' {
		return Envelope{}, p.wrongType("Document must be a JSON object")
	}
	p.dst = make([]byte, 0, len(text)-p.pos)
	if !p.object() || !p.atEnd() {
		return Envelope{}, p.err()
	}
	if p.refusal != nil {
		return Envelope{}, p.refusal
	}
	p.env.Body = p.dst
	return p.env, nil
}

// envelopeParser reads the members of a document.
type envelopeParser struct {
	scanner
	env     Envelope
	refusal error // the first refused underscore member
	kept    bool  // a member has been kept in the body
}

// object reads the document; src[pos] is its opening brace.
func (p *envelopeParser) object() bool {
	p.depth++
	p.pos++
	p.flushTo(p.pos)
	if p.space() == '}' {
		p.pos++
		p.flushTo(p.pos)
		return true
	}
	for {
		p.space()
		if !p.member() {
			return false
		}
		// Nothing is pending here but the member, if it was kept. The comma is
		// written by the next member that is.
		p.flushTo(p.pos)
		more, ok := p.comma('}')
		if !ok {
			return false
		}
		p.mark = p.pos
		if !more {
			p.dst = append(p.dst, '}')
			return true
		}
	}
}

// member reads one member of the document; src[pos] is its opening quote.
func (p *envelopeParser) member() bool {
	from := p.pos
	if from+1 >= len(p.src) || p.src[from] != '"' {
		return false
	}
	if c := p.src[from+1]; c == '_' || c == '\\' {
		name, ok := p.specialName()
		if !ok {
			return false
		}
		if name != "" {
			return p.special(name)
		}
	}
	if p.kept {
		p.dst = append(p.dst, ',')
	}
	p.kept = true
	return p.str() && p.colon() && p.value()
}

// specialName returns the name of the member at src[pos] when it is an
// underscore member that is not kept as data, and an empty name otherwise. It
// moves on only in the first case.
func (p *envelopeParser) specialName() (string, bool) {
	look := scanner{src: p.src, pos: p.pos, drop: true}
	if !look.str() {
		return "", false
	}
	name, ok := Unquote(p.src[p.pos:look.pos])
	if !ok {
		return "", false
	}
	if !strings.HasPrefix(name, "_") || isData(name) {
		return "", true
	}
	p.pos = look.pos
	return name, true
}

// isData tells the underscore members that are kept like any other.
func isData(name string) bool {
	switch name {
	case "_access", "_replication_id", "_replication_state", "_replication_state_time",
		"_replication_state_reason", "_replication_stats":
		return true
	}
	return false
}

// special reads the value of an underscore member, which is not written, and
// takes it over.
func (p *envelopeParser) special(name string) bool {
	p.drop = true
	ok := p.colon()
	p.space()
	from := p.pos
	ok = ok && p.value()
	p.drop = false
	p.mark = p.pos
	if !ok {
		return false
	}
	if err := p.env.take(name, p.src[from:p.pos:p.pos]); err != nil && p.refusal == nil {
		p.refusal = err
	}
	return true
}

// take interprets the underscore member name; value is valid JSON.
func (e *Envelope) take(name string, value []byte) error {
	switch name {
	case "_id":
		return e.takeID(value)
	case "_rev":
		return e.takeRev(value)
	case "_deleted":
		e.Deleted = value[0] == 't'
		if value[0] != 't' && value[0] != 'f' {
			return errSpecial(name)
		}
		return nil
	case "_revisions":
		return e.takeRevisions(value)
	case "_attachments":
		return e.takeAttachments(value)
	case "_revs_info", "_local_seq", "_conflicts", "_deleted_conflicts":
		return nil // what a read adds
	}
	return errSpecial(name)
}

func errSpecial(name string) *fault.Error {
	return fault.New(fault.DocValidation, "Bad special document member: "+name)
}

func (e *Envelope) takeID(value []byte) error {
	id, ok := Unquote(value)
	if !ok {
		return fault.New(fault.IllegalDocID, "Document id must be a string")
	}
	e.ID, e.HasID = id, true
	return ValidateID(id)
}

// takeRev reads _rev. After _revisions it is not looked at (golden docs/13).
func (e *Envelope) takeRev(value []byte) error {
	if e.HasRevisions {
		return nil
	}
	text, ok := Unquote(value)
	if !ok {
		return errRev()
	}
	rev, err := ParseRev(text)
	if err != nil {
		return err
	}
	e.Rev, e.HasRev, e.RevText = rev, true, text
	return nil
}

// takeRevisions reads {"start": N, "ids": [...]}. No ids name nothing.
func (e *Envelope) takeRevisions(value []byte) error {
	if !IsObject(value) {
		return errSpecial("_revisions")
	}
	var start, list []byte
	err := EachMember(value, func(name string, v []byte) error {
		switch name {
		case "start":
			start = v
		case "ids":
			list = v
		}
		return nil
	})
	if err != nil {
		return err
	}
	path := Path{}
	if path.Start, err = strconv.ParseUint(string(start), 10, 63); err != nil {
		return fault.New(fault.DocValidation, "_revisions.start isn't an integer.")
	}
	if !IsArray(list) {
		return fault.New(fault.DocValidation, "_revisions.ids isn't a array.")
	}
	if path.IDs, err = revisionIDs(list); err != nil {
		return err
	}
	if n := uint64(len(path.IDs)); n > max(path.Start, 1) {
		return fault.New(fault.DocValidation, "_revisions.ids is longer than _revisions.start allows.")
	}
	e.Revisions, e.HasRevisions = path, len(path.IDs) > 0
	return nil
}

// revisionIDs reads the array of _revisions.ids. Ids of the usual length are
// slices of one string.
func revisionIDs(list []byte) ([]string, error) {
	n := bytes.Count(list, []byte(","))
	ids := make([]string, 0, min(n+1, len(list)/4))
	err := EachElement(list, func(v []byte) error {
		text, ok := Unquote(v)
		if !ok {
			return fault.New(fault.DocValidation, "RevId isn't a string")
		}
		id, ok := parseRevID(text)
		if !ok {
			return fault.New(fault.DocValidation, "RevId isn't a valid hexadecimal")
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// ValidateID checks a document id: not empty, UTF-8, and with a leading
// underscore only below _design/ and _local/. The errors are
// fault.IllegalDocID with the texts of api.md 9.6.
func ValidateID(id string) error {
	reason := ""
	switch {
	case id == "":
		reason = "Document id must not be empty"
	case !utf8.ValidString(id):
		reason = "Document id must be valid UTF-8"
	case id[0] != '_':
		return nil
	case id == "_design/":
		reason = "Illegal document id `_design/`"
	case id == "_local/":
		reason = "Illegal document id `_local/`"
	case strings.HasPrefix(id, "_design/"), strings.HasPrefix(id, "_local/"):
		return nil
	default:
		reason = "Only reserved document ids may start with underscore."
	}
	return fault.New(fault.IllegalDocID, reason)
}

// integer reads a JSON number that is an integer between 0 and 2^63-1.
func integer(value []byte) (int64, bool) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	return int64(n & math.MaxInt64), err == nil
}
