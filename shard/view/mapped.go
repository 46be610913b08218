package view

import (
	"strconv"
	"strings"

	"divan/shard"
	"divan/storage/collate"
)

// mapped is the rows of some documents, encoded as they are stored, in one
// buffer.
type mapped struct {
	docs  []mappedDoc
	rows  []mappedRow
	bytes []byte
	first int    // the first row of the document that is being mapped
	text  []byte // of that document
	sort  []byte // of a row
	order []int  // of the rows of a document, by key
}

// mappedDoc is one document; the rows are those up to its end.
type mappedDoc struct {
	id       string
	rows     int // end in mapped.rows
	from, to int // its entry in the back index
}

// mappedRow is one row: its key from the tree on, and its value.
type mappedRow struct {
	tree            int
	size            int // bytes of key and value as JSON
	from, value, to int // in mapped.bytes
	sort            int // length of the sort key
	ordinal         int
}

func (m *mapped) reset() {
	m.docs, m.rows, m.bytes, m.first = m.docs[:0], m.rows[:0], m.bytes[:0], 0
}

// emit adds a row of the document that end is called with next.
func (m *mapped) emit(id string, t *tree, key, value []byte) {
	sort := m.sort[:0]
	if t.partitioned {
		sort = appendEscaped(sort, partitionOf(id))
	}
	sort, err := appendSortKey(sort, key, t.raw)
	if m.sort = sort; err != nil {
		return // no engine emits what is no JSON
	}
	ordinal := 0
	for i := len(m.rows) - 1; i >= m.first; i-- {
		if m.rows[i].tree == t.number {
			ordinal = m.rows[i].ordinal + 1
			break
		}
	}
	r := mappedRow{tree: t.number, size: len(key) + len(value), from: len(m.bytes), sort: len(sort), ordinal: ordinal}
	m.bytes = appendRowKey(appendTree(m.bytes, spaceRows, t.number), sort, id, ordinal)
	r.value = len(m.bytes)
	m.bytes = appendRowValue(m.bytes, len(sort), key, value)
	r.to = len(m.bytes)
	m.rows = append(m.rows, r)
}

// end ends the rows of a document.
func (m *mapped) end(id string) {
	m.orderValues(id)
	d := mappedDoc{id: id, rows: len(m.rows), from: len(m.bytes)}
	for i := range m.rows[m.first:] {
		r := &m.rows[m.first+i]
		m.bytes = appendBackRow(m.bytes, &backRow{tree: r.tree, ordinal: r.ordinal, size: r.size, sort: m.sortOf(r)})
	}
	d.to = len(m.bytes)
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

// partitionOf is what stands before the colon of an id.
func partitionOf(id string) string {
	partition, _, _ := strings.Cut(id, ":")
	return partition
}

// skips reports whether a document has no rows whatever the functions say.
func (d *Definition) skips(id string) bool {
	return strings.HasPrefix(id, "_design/") && (!d.IncludeDesign || d.Language == Query)
}

// appendDocument appends the text of a document as map functions see it.
func (d *Definition) appendDocument(dst []byte, seq uint64, doc *shard.Doc) []byte {
	dst = shard.AppendDoc(dst, doc)
	if d.LocalSeq {
		dst = append(dst[:len(dst)-1], `,"_local_seq":`...)
		dst = append(strconv.AppendUint(dst, seq, 10), '}')
	}
	return dst
}
