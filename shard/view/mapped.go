package view

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"divan/shard"
	"divan/shard/index"
	"divan/storage/collate"
	"divan/storage/fault"
)

// mapped is the rows of some documents, encoded as they are stored.
type mapped struct {
	docs  []mappedDoc
	rows  []mappedRow
	texts arena // of rows, and entries of the back index

	// Of the document that is being mapped:
	space   *index.Space
	id      string
	first   int   // its first row
	size    int   // bytes of its rows
	refused bool  // there is no space for it
	order   []int // of its rows, by key
	text    []byte

	sort, scratch []byte // of a row
	key           []byte
}

// mappedDoc is one document; the rows are those up to its end.
type mappedDoc struct {
	id   string
	rows int    // end in mapped.rows
	back []byte // its entry in the back index
}

// mappedRow is one row: its key from the tree on, and its value behind it.
type mappedRow struct {
	text    []byte
	value   uint32 // where that begins
	sort    uint32 // length of the sort key
	size    uint32 // bytes of key and value as JSON
	ordinal uint32
	tree    uint32
}

func (r *mappedRow) key() []byte { return r.text[:r.value:r.value] }

// sortKey returns the sort key, with the partition.
func (r *mappedRow) sortKey() []byte { return r.text[treePrefix:][:r.sort] }

// What one document may become. Beyond it the document is left out of the index, which
// says so.
const (
	maxDocRows  = 1 << 20  // rows
	maxDocBytes = 64 << 20 // of its rows, as they are stored
	maxKeyBytes = 8 << 20  // of a key as JSON: what a document may have
)

// What a row takes beside its text, about: itself, while the rows are growing, and
// its places in the batch and in the back index.
const rowBytes = 160

// keepTexts is how much memory what is used again may have.
const keepTexts = 2 << 20

func (m *mapped) reset(space *index.Space) {
	m.docs, m.rows, m.first, m.space = m.docs[:0], m.rows[:0], 0, space
	m.texts.reset()
}

// worthKeeping reports whether the memory is worth being used again.
func (m *mapped) worthKeeping() bool {
	return m.texts.bytes()+cap(m.rows)*int(unsafe.Sizeof(mappedRow{}))+cap(m.text)+cap(m.scratch)+cap(m.sort) <= keepTexts
}

// begin begins a document.
func (m *mapped) begin(id string) { m.id, m.size, m.refused = id, 0, false }

// emit adds a row of the document.
func (m *mapped) emit(t *tree, key, value []byte) error {
	if len(key) > maxKeyBytes {
		return errTooMuch("a key of %d bytes is emitted, at most %d are indexed", len(key), maxKeyBytes)
	}
	sort := m.sort[:0]
	if t.partitioned {
		sort = appendEscaped(sort, partitionOf(m.id))
	}
	sort, err := appendSortKey(sort, key, t.raw)
	if m.sort = sort; err != nil {
		return &fault.Error{Kind: fault.BadFunction, Code: "invalid_key", Reason: "The key of a row cannot be ordered: " + err.Error() + ".", Err: err}
	}
	ordinal := 0
	for i := len(m.rows) - 1; i >= m.first; i-- {
		if m.rows[i].tree == uint32(t.number) {
			ordinal = int(m.rows[i].ordinal) + 1
			break
		}
	}
	head := appendRowKey(appendTree(m.scratch[:0], spaceRows, t.number), sort, m.id, ordinal)
	r := mappedRow{
		tree: uint32(t.number), size: uint32(len(key) + len(value)), sort: uint32(len(sort)), ordinal: uint32(ordinal), value: uint32(len(head)),
	}
	head = appendLengths(head, len(sort), len(key))
	m.scratch = head
	size := len(head) + len(key) + len(value) // nothing large is copied before there is space
	switch {
	case len(m.rows)-m.first >= maxDocRows:
		return errTooMuch("more than %d rows are emitted", maxDocRows)
	case m.size+size > maxDocBytes:
		return errTooMuch("more than %d bytes of rows are emitted", maxDocBytes)
	case !m.space.Take(2*(size+len(sort)) + rowBytes): // with its part of the back entry, here and in the batch
		m.refused = true
		return errNoSpace
	}
	m.size += size
	r.text = append(append(append(m.texts.take(size), head...), key...), value...)
	m.rows = append(m.rows, r)
	return nil
}

// errNoSpace ends a function whose document is mapped again.
var errNoSpace = errors.New("no space for the rows of a document")

// errTooMuch returns the error for a document whose rows exceed a limit.
func errTooMuch(format string, args ...any) error {
	return &fault.Error{Kind: fault.BadFunction, Code: "too_many_rows", Reason: "The limit of a document is exceeded: " + fmt.Sprintf(format, args...) + "."}
}

// drop takes back the last rows of the document that are in a tree.
func (m *mapped) drop(tree int) {
	n := len(m.rows)
	for ; n > m.first && m.rows[n-1].tree == uint32(tree); n-- {
		m.size -= len(m.rows[n-1].text)
	}
	m.rows = m.rows[:n]
}

// abandon takes back the document.
func (m *mapped) abandon() { m.rows = m.rows[:m.first] }

// end ends the rows of the document.
func (m *mapped) end() {
	m.orderValues()
	back := m.scratch[:0]
	for i := range m.rows[m.first:] {
		r := &m.rows[m.first+i]
		back = appendBackRow(back, &backRow{tree: int(r.tree), ordinal: int(r.ordinal), size: int(r.size), sort: r.sortKey()})
	}
	m.scratch = back
	d := mappedDoc{id: m.id, rows: len(m.rows)}
	if d.rows > m.first {
		d.back = m.texts.copy(back)
	}
	m.docs = append(m.docs, d)
	m.first = d.rows
}

// AppendSortKey appends the bytes by which a key, a JSON text, is ordered in the
// view.
func (v *ViewDefinition) AppendSortKey(dst, key []byte) ([]byte, error) {
	return appendSortKey(dst, key, v.Raw)
}

func appendSortKey(dst, key []byte, raw bool) ([]byte, error) {
	if raw {
		return collate.AppendRawKey(dst, key)
	}
	return collate.AppendKey(dst, key)
}

// partitionOf returns the part of an id before the colon.
func partitionOf(id string) string {
	partition, _, _ := strings.Cut(id, ":")
	return partition
}

// skips reports whether a document has no rows, regardless of the functions.
func (d *Definition) skips(id string) bool {
	return strings.HasPrefix(id, "_design/") && (!d.IncludeDesign || d.Language == Query)
}

// appendDocument appends the text of a document as map functions see it.
func (d *Definition) appendDocument(dst []byte, seq uint64, doc *shard.Doc) []byte {
	own := *doc
	if d.LocalSeq {
		own.LocalSeq = seq
	}
	return shard.AppendDoc(dst, &own)
}
