package doc

import (
	"bytes"
	"math"
	"strconv"
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
	// and stay. "{}" when nothing is left. A float that is -0.0 has its sign yet,
	// which a revision's id depends on; StoredBody takes it away.
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
// first, otherwise the first refused underscore member. Of members that occur
// twice in an object only the last one is read.
//
// The result does not alias text, except for AttachmentSpec.Data.
func ParseEnvelope(text []byte) (Envelope, error) { return parseEnvelope(text, true) }

// parseEnvelope is ParseEnvelope; check says that there may be members that occur twice.
func parseEnvelope(text []byte, check bool) (Envelope, error) {
	p := envelopeParser{scanner: scanner{src: text, signs: true, names: nameCheck{on: check}}}
	if p.skipSpace() != '{' {
		return Envelope{}, p.wrongType(notObject)
	}
	p.dst = make([]byte, 0, bodySpace(text[p.pos:]))
	if !p.document() || !p.atEnd() {
		return Envelope{}, p.err()
	}
	if p.names.twice {
		return parseEnvelope(lastMembers(text), false)
	}
	if p.refusal != nil {
		return Envelope{}, p.refusal
	}
	return p.env, nil
}

// bodySpace guesses how much space the bodies in text need: all of it, unless
// most of it may be the data of attachments.
func bodySpace(text []byte) int {
	const large, start = 64 << 10, 4 << 10
	if len(text) > large && bytes.Contains(text, []byte(`"_attachments"`)) {
		return start
	}
	return len(text)
}

const notObject = "Document must be a JSON object"

// envelopeParser reads documents, one after the other, and writes their bodies
// one after the other to dst.
type envelopeParser struct {
	scanner
	env     Envelope // of the last document read
	refusal error    // the first refused underscore member of all documents
	kept    bool     // the body has a member already
	id, rev []byte   // the texts of _id and _rev, on their way to env
}

// document reads one document into env; src[pos] is its opening brace. False
// means that the text is no JSON.
func (p *envelopeParser) document() bool {
	p.env, p.kept, p.id, p.rev = Envelope{}, false, nil, nil
	p.mark = p.pos
	start := len(p.dst)
	p.depth++
	p.pos++
	p.names.open()
	if p.skipSpace() == '}' {
		p.pos++
	} else if !p.members() {
		return false
	}
	p.names.close()
	p.flushTo(p.pos)
	p.depth--
	p.env.Body = p.dst[start:len(p.dst):len(p.dst)]
	p.finish()
	return true
}

// members reads the members of a document up to and including its closing
// brace. At the start of each member, everything before it is either written
// or pending, without the comma that leads the member.
func (p *envelopeParser) members() bool {
	for {
		p.skipSpace()
		if p.pos >= len(p.src) || p.src[p.pos] != '"' || !p.member() {
			return false
		}
		switch p.skipSpace() {
		case ',':
			p.pos++
			if p.kept && p.plainNext() {
				continue // the comma is pending, in its place
			}
			p.flushTo(p.pos - 1)
			p.mark = p.pos
		case '}':
			p.pos++
			return true
		default:
			return false
		}
	}
}

// plainNext reports whether the next member follows at once and is certainly
// an ordinary one.
func (p *envelopeParser) plainNext() bool {
	return p.pos+1 < len(p.src) && p.src[p.pos] == '"' && p.src[p.pos+1] != '_' && p.src[p.pos+1] != '\\'
}

// member reads one member of the document; src[pos] is its opening quote.
func (p *envelopeParser) member() bool {
	from := p.pos
	if from+1 >= len(p.src) {
		return false
	}
	if c := p.src[from+1]; c == '_' || c == '\\' {
		p.flushTo(from)
		if name, next, ok := underscoreName(p.src, from); !ok {
			return false
		} else if name != nil {
			if p.pos = next; p.names.on {
				p.names.add(p.src[from:next])
			}
			return p.special(name)
		}
	}
	// A pending comma is there only when nothing was left out.
	if p.kept && p.mark == from {
		p.dst = append(p.dst, ',')
	}
	p.kept = true
	return p.name() && p.colon() && p.value()
}

// underscoreName returns the name of the member at src[at] when it is an
// underscore member that is not kept as data, and where its closing quote
// ends; a nil name otherwise. It fails when there is no proper string.
func underscoreName(src []byte, at int) (name []byte, next int, ok bool) {
	look := scanner{src: src, pos: at, drop: true}
	if !look.str() {
		return nil, 0, false
	}
	name, ok = unquoted(src[at:look.pos])
	if !ok || len(name) == 0 || name[0] != '_' || isData(name) {
		return nil, 0, ok
	}
	return name, look.pos, true
}

// isData tells the underscore members that are kept like any other.
func isData(name []byte) bool {
	switch string(name) {
	case "_access", "_replication_id", "_replication_state", "_replication_state_time",
		"_replication_state_reason", "_replication_stats":
		return true
	}
	return false
}

// special reads the value of an underscore member, which is not written, and
// takes it over.
func (p *envelopeParser) special(name []byte) bool {
	p.drop = true
	if !p.colon() {
		return false
	}
	value, ok := p.raw()
	p.drop = false
	p.mark = p.pos
	if !ok {
		return false
	}
	if err := p.take(name, value); err != nil && p.refusal == nil {
		p.refusal = err
	}
	return true
}

// finish makes the strings of _id and _rev: slices of one, so that a usual
// document costs two allocations, this and its body.
func (p *envelopeParser) finish() {
	if p.id == nil && p.rev == nil {
		return
	}
	var buf [192]byte
	text := append(buf[:0], p.id...)
	text = append(text, p.rev...)
	e := &p.env
	e.HasID, e.HasRev = p.id != nil, p.rev != nil
	_, idAt := revPosition(p.rev)
	hex := len(p.rev)-idAt == 2*rawIDLen
	if hex {
		raw, _ := decodeHexID(p.rev[idAt:])
		text = append(text, raw[:]...)
	}
	all := string(text)
	e.ID = all[:len(p.id)]
	if !e.HasRev {
		return
	}
	all = all[len(p.id):]
	e.RevText = all[:len(p.rev)]
	if hex {
		e.Rev.ID = all[len(p.rev):]
	} else {
		e.Rev.ID = e.RevText[idAt:]
	}
}

// take interprets the underscore member name; value is valid JSON.
func (p *envelopeParser) take(name, value []byte) error {
	e := &p.env
	switch string(name) {
	case "_id":
		return p.takeID(value)
	case "_rev":
		return p.takeRev(value)
	case "_deleted":
		e.Deleted = value[0] == 't'
		if value[0] != 't' && value[0] != 'f' {
			return errSpecial("_deleted")
		}
		return nil
	case "_revisions":
		return e.takeRevisions(value)
	case "_attachments":
		return e.takeAttachments(value)
	case "_revs_info", "_local_seq", "_conflicts", "_deleted_conflicts":
		return nil // what a read adds
	}
	return errSpecial(string(name))
}

func errSpecial(name string) *fault.Error {
	return fault.New(fault.DocValidation, "Bad special document member: "+name)
}

func (p *envelopeParser) takeID(value []byte) error {
	id, ok := unquoted(value)
	if !ok {
		return fault.New(fault.IllegalDocID, "Document id must be a string")
	}
	p.id = id
	return illegalID(id)
}

// takeRev reads _rev. After _revisions it is not looked at (golden docs/13).
func (p *envelopeParser) takeRev(value []byte) error {
	if p.env.HasRevisions {
		return nil
	}
	text, ok := unquoted(value)
	if !ok {
		return errRev()
	}
	pos, id := revPosition(text)
	if id == 0 {
		return errRev()
	}
	if len(text)-id == 2*rawIDLen {
		if _, ok := decodeHexID(text[id:]); !ok {
			return errRev()
		}
	}
	p.rev, p.env.Rev.Pos = text, pos
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

// revisionIDs reads the array of _revisions.ids. The ids are slices of one
// string: a history of 1000 costs a few allocations.
func revisionIDs(list []byte) ([]string, error) {
	n := bytes.Count(list, []byte(",")) + 1
	all := make([]byte, 0, min(n*rawIDLen, len(list)))
	ends := make([]int, 0, n)
	err := EachElement(list, func(v []byte) error {
		text, ok := unquoted(v)
		if !ok {
			return fault.New(fault.DocValidation, "RevId isn't a string")
		}
		if len(text) == 2*rawIDLen {
			raw, ok := decodeHexID(text)
			if !ok {
				return fault.New(fault.DocValidation, "RevId isn't a valid hexadecimal")
			}
			text = raw[:]
		}
		all = append(all, text...)
		ends = append(ends, len(all))
		return nil
	})
	if err != nil {
		return nil, err
	}
	ids, text, from := make([]string, len(ends)), string(all), 0
	for i, end := range ends {
		ids[i] = text[from:end]
		from = end
	}
	return ids, nil
}

// ValidateID checks a document id: not empty, UTF-8, and with a leading
// underscore only below _design/ and _local/. The errors are
// fault.IllegalDocID with the texts of api.md 9.6.
func ValidateID(id string) error {
	if !utf8.ValidString(id) {
		return fault.New(fault.IllegalDocID, "Document id must be valid UTF-8")
	}
	return illegalID(id)
}

// illegalID is ValidateID for text that is known to be UTF-8.
func illegalID[T string | []byte](id T) error {
	if len(id) > 0 && id[0] != '_' {
		return nil
	}
	reason := "Only reserved document ids may start with underscore."
	switch {
	case len(id) == 0:
		reason = "Document id must not be empty"
	case len(id) >= len(DesignPrefix) && string(id[:len(DesignPrefix)]) == DesignPrefix:
		if len(id) > len(DesignPrefix) {
			return nil
		}
		reason = "Illegal document id `_design/`"
	case len(id) >= len(LocalPrefix) && string(id[:len(LocalPrefix)]) == LocalPrefix:
		if len(id) > len(LocalPrefix) {
			return nil
		}
		reason = "Illegal document id `_local/`"
	}
	return fault.New(fault.IllegalDocID, reason)
}

// integer reads a JSON number that is an integer between 0 and 2^63-1.
func integer(value []byte) (int64, bool) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	return int64(n & math.MaxInt64), err == nil
}
