package find

import (
	"divan/shard/query"
	"divan/shard/view"
)

// Request asks one copy for the documents that match a selector.
type Request struct {
	Copy      string
	Selector  []byte  // JSON
	Fields    []byte  // JSON array of paths; none: whole documents
	Ranges    []Range // read in their order, or with Desc backwards from the last; none: everything
	Desc      bool
	Conflicts bool // documents come with their conflicts
	Plain     bool // every row, unmatched and without its document: the caller reads the document elsewhere
	Count     bool // no rows, only figures
	Limit     int  // rows at most; 0: all
	Hint      int  // rows that will most likely be read; 0: unknown
	After     *Position
	Index     *Index // nil: the documents by id

	// Parsed is Selector and Fields on the node that asks, where they have been
	// read already. It does not travel.
	Parsed *Parsed
}

// Parsed is a request's selector and fields.
type Parsed struct {
	Selector *query.Selector
	Fields   *query.Fields
}

// Range is the ids, or sort keys of an index, from Lo to Hi, both included.
type Range struct {
	Lo, Hi []byte // Hi nil: no end
}

// Position is behind a row in the direction of reading.
type Position struct {
	Sort []byte // sort key in the index; empty of documents by id
	ID   string
}

// Index is the index that is read.
type Index struct {
	Signature  string
	Definition []byte // view.Definition.Text
	Design     string
	View       string
	Update     view.Update
	Partition  string
	Covering   []string // its fields, when documents are not to be read; none: they are
}

// Row is a document that matches.
type Row struct {
	Sort []byte // sort key in the index; empty of documents by id
	ID   string
	Doc  []byte // what is wanted of it; none with Plain
}

// Batch holds rows of a Stream, and what has been looked at for them. It is meant to
// be used again: everything in it but ids is valid until the next call of Next with
// it. It may be empty although there is more.
type Batch struct {
	Rows    []Row
	Figures Figures
	Last    Position // where the reading stands; behind the last row when rows were left unread
	Moved   bool     // Last is set

	bytes    []byte
	ids      []byte
	ends     []end
	most     int // rows
	lastSort []byte
	lastID   []byte
}

// end is where the parts of a row end in Batch.bytes and Batch.ids.
type end struct{ sort, doc, id int }

// Figures count what was looked at.
type Figures struct {
	Keys    uint64 // of the index, or ids
	Docs    uint64 // read
	Matches uint64
}

// Add adds the figures of another batch.
func (f *Figures) Add(o Figures) {
	f.Keys += o.Keys
	f.Docs += o.Docs
	f.Matches += o.Matches
}

// Bounds of a batch. One is full at the first of them, so that a stream holds little,
// gives its first rows early and a sign of life now and then.
const (
	maxRows  = 512
	maxBytes = 512 << 10
	maxLook  = 16384 // documents that are looked at

	// checkEvery is how many rows are looked at between checks whether the client
	// still waits.
	checkEvery = 1024
)

// reset makes the batch empty; it is full with most rows at the latest.
func (b *Batch) reset(most int) {
	b.most = most
	b.Rows, b.Figures, b.Moved = b.Rows[:0], Figures{}, false
	b.bytes, b.ids, b.ends = b.bytes[:0], b.ids[:0], b.ends[:0]
	b.lastSort, b.lastID = b.lastSort[:0], b.lastID[:0]
}

// add adds the row that was looked at last; its document has been appended to bytes
// behind its sort key.
func (b *Batch) add(sortEnd int) {
	b.ids = append(b.ids, b.lastID...)
	b.ends = append(b.ends, end{sort: sortEnd, doc: len(b.bytes), id: len(b.ids)})
}

// full reports whether the batch holds enough.
func (b *Batch) full() bool {
	return len(b.ends) >= b.most || len(b.bytes) >= maxBytes || b.Figures.Keys >= maxLook
}

// finish makes the rows, whose ids are parts of one string.
func (b *Batch) finish() {
	all := string(b.ids)
	var from end
	for _, to := range b.ends {
		b.Rows = append(b.Rows, Row{
			Sort: b.bytes[from.doc:to.sort:to.sort], Doc: b.bytes[to.sort:to.doc:to.doc], ID: all[from.id:to.id],
		})
		from = to
	}
	b.Last = Position{Sort: b.lastSort, ID: string(b.lastID)}
}
