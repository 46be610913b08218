package doc

import "divan/storage/fault"

// Bulk is the body of a _bulk_docs request taken apart.
type Bulk struct {
	Docs     []Envelope
	NewEdits bool // true unless the client says false
	// Others are the members beside docs and new_edits, such as w; the raw
	// texts alias the body.
	Others []Member
}

// Member is one member of an object: its name and the raw text of its value.
type Member struct {
	Name  string
	Value []byte
}

// ParseBulk reads the body of a _bulk_docs request in one pass: what
// EachMember, EachElement and ParseEnvelope would do in three. All bodies of
// the documents lie in one piece of memory. space is asked before more is made of
// the body, beside its text; its error ends the reading. nil: there is space.
//
// Errors, the first that applies: malformed JSON; a body that is no object;
// docs that is missing or no array; new_edits that is no boolean; the first
// refused document (the texts are those of golden bulk/02).
func ParseBulk(text []byte, space func(bytes int) error) (Bulk, error) {
	b := bulkParser{envelopeParser: envelopeParser{scanner: scanner{src: text, drop: true, signs: true}}, space: space}
	if b.skipSpace() != '{' {
		return Bulk{}, b.wrongType(notRequestObject)
	}
	b.bulk.NewEdits = true
	if !b.read() {
		if b.crowded != nil {
			return Bulk{}, b.crowded
		}
		return Bulk{}, b.err()
	}
	out, err := b.result()
	if err == nil && b.refusal != nil {
		return Bulk{}, b.refusal
	}
	return out, err
}

// bulkParser reads the body of _bulk_docs; only inside a document does its
// scanner write.
type bulkParser struct {
	envelopeParser
	bulkOutcome
	space   func(bytes int) error
	crowded error // of space
}

// holds reports whether there is space for more.
func (b *bulkParser) holds(bytes int) bool {
	if b.space != nil {
		b.crowded = b.space(bytes)
	}
	return b.crowded == nil
}

// read reads the whole body; false means that it is no JSON.
func (b *bulkParser) read() bool {
	b.depth++
	b.pos++
	if b.skipSpace() == '}' {
		b.pos++
		return b.atEnd()
	}
	for {
		b.skipSpace()
		if !b.member() {
			return false
		}
		more, ok := b.comma('}')
		if !ok || !more {
			return ok && b.atEnd()
		}
	}
}

// member reads one member of the body.
func (b *bulkParser) member() bool {
	from := b.pos
	if from >= len(b.src) || b.src[from] != '"' {
		return false
	}
	if !b.str() {
		return false
	}
	name, ok := unquoted(b.src[from:b.pos])
	if !ok || !b.colon() {
		return false
	}
	c := b.skipSpace()
	if string(name) == "docs" {
		b.hasDocs, b.docsWrong, b.bulk.Docs = true, c != '[', nil
		if c == '[' {
			return b.documents()
		}
	}
	value, ok := b.raw()
	if !ok || !b.holds(memberSpace) {
		return false
	}
	b.bulkOutcome.member(string(name), c, value)
	return true
}

// bulkSpace is bodySpace for many documents, of which the first ones tell: all of them
// would be read twice otherwise.
func bulkSpace(text []byte) int {
	const first = 128 << 10
	if len(text) > first && bodySpace(text[:first]) < first {
		return first
	}
	return len(text)
}

// mostDocsAhead is for how many documents of the size of the first one there is space before
// they are seen.
const mostDocsAhead = 1 << 10

// documents reads the array of documents; src[pos] is its opening bracket.
func (b *bulkParser) documents() bool {
	if b.dst == nil {
		b.dst = make([]byte, 0, bulkSpace(b.src[b.pos:]))
	}
	b.depth++
	b.pos++
	if b.skipSpace() == ']' {
		b.pos++
		b.depth--
		return true
	}
	for first := b.pos; ; {
		if b.skipSpace() == '{' {
			if !b.next() {
				return false
			}
			if b.bulk.Docs == nil {
				b.bulk.Docs = make([]Envelope, 0, min((len(b.src)-first)/(b.pos-first)+1, mostDocsAhead))
			}
			b.bulk.Docs = append(b.bulk.Docs, b.env)
		} else {
			if _, ok := b.raw(); !ok {
				return false
			}
			if b.refusal == nil {
				b.refusal = fault.New(fault.BadRequest, notObject)
			}
		}
		more, ok := b.comma(']')
		if !ok {
			return false
		}
		if !more {
			b.depth--
			return true
		}
	}
}

// next reads one document of the array.
func (b *bulkParser) next() bool {
	from, refusal := b.pos, b.refusal
	b.drop, b.names.on, b.names.twice = false, true, false
	if !b.holds(documentSpace) || !b.document() {
		return false
	}
	b.drop, b.names.on = true, false
	if !b.names.twice {
		return true
	}
	text := b.src[from:b.pos]
	if !b.holds(2 * len(text)) {
		return false
	}
	var err error
	b.env, err = parseEnvelope(lastMembers(text), false)
	if b.refusal = refusal; refusal == nil {
		b.refusal = err
	}
	return true
}
