package view

import (
	"slices"

	"divan/cluster/sequence"
	"divan/shard"
	shardview "divan/shard/view"
	"divan/storage/memory"
)

// NoLimit as a limit, like any negative number, means all rows.
const NoLimit = -1

// Query selects rows of a view (api.md section 11.2). Keys are JSON.
type Query struct {
	StartKey, EndKey []byte // nil: unbounded; in the direction of the answer
	StartID, EndID   string // with StartKey, EndKey or each of Keys: document ids within equal keys; empty: none
	InclusiveEnd     bool
	Descending       bool
	Keys             [][]byte // with HasKeys: the rows of these keys, in this order (rows, not groups, backwards when Descending)
	HasKeys          bool
	Skip             int
	Limit            int // negative: no limit
	Update           shardview.Update
	Partition        string // of a partitioned view
	Reduce           bool
	GroupLevel       int // with Reduce; see shardview.Request
	Docs             DocsOptions
	UpdateSeq        bool // Rows.UpdateSeq is filled in
}

// DocsOptions say which documents come with the rows.
type DocsOptions struct {
	Include   bool
	Conflicts bool // with the live leaves that lost, of documents that the row's value does not name
	// Memory counts the documents that rows name and that wait for their rows; nil: nothing does.
	Memory memory.Holder
}

// Row is one row of an answer: of the view, or with Query.Reduce a group.
type Row struct {
	ID         string // empty for a group
	Key, Value []byte // JSON
	Doc        *shard.Doc
	Overflow   string // of a group whose reduction was too long: why, instead of a value
}

// Rows is an answer, in order:
//
//	for rows.Next() { use(rows.Row()) }
//	err := rows.Err()
//	rows.Close()
//
// It belongs to one goroutine.
type Rows struct {
	Total     int64  // rows of the view, of the partition when one is asked for; not of a reduced answer
	Offset    int64  // rows before the first row; not of a reduced answer
	UpdateSeq string // that the answer reflects, as a client may send it back as since; empty: not asked for

	source  source
	explain func(err error) error // what the client is told
	row     Row
	skip    int
	left    int // rows that may still be handed out; negative: no limit
	err     error
}

// source is where the rows come from. next fills a row, which is valid until the
// following next; ok is false at the end. skip passes over the next row.
type source interface {
	next(row *Row) (ok bool, err error)
	skip() (ok bool, err error)
	close()
}

// Next moves to the next row. It returns false at the end and after an error.
func (r *Rows) Next() bool {
	ok := r.left != 0 && r.err == nil
	for ; ok && r.skip > 0; r.skip-- {
		ok, r.err = r.source.skip()
	}
	if ok {
		ok, r.err = r.source.next(&r.row)
	}
	if !ok || r.err != nil {
		r.err = r.explain(r.err)
		r.row, r.left = Row{}, 0
		return false
	}
	if r.left > 0 {
		r.left--
	}
	return true
}

// Row returns the current row. It and what it refers to are valid until the next
// call of Next.
func (r *Rows) Row() *Row { return &r.row }

// Err returns what ended the rows early, nil when there was nothing.
func (r *Rows) Err() error { return r.err }

// Close ends the reading and waits for its goroutines. It must be called.
func (r *Rows) Close() { r.source.close() }

// describe fills in what an answer tells besides its rows.
func (r *Rows) describe(parts []*part) {
	for _, p := range parts {
		r.Total += int64(p.Head.Total)
		r.Offset += int64(p.offset)
	}
	r.Offset = min(r.Offset+int64(r.skip), r.Total)
}

// updateSeq returns the sequence that an answer of all ranges reflects.
func updateSeq(parts []*part) string {
	marks := make([]sequence.Mark, len(parts))
	for i, p := range parts {
		of := p.Copies[0]
		marks[i] = sequence.Mark{Begin: of.Begin, End: of.End, Copy: sequence.PrefixOf(p.Head.UUID), Seq: p.Head.Seq}
	}
	return sequence.Of(marks).String()
}

// ranges returns what a query selects, in the order in which it is read.
func (q *Query) ranges(of *shardview.ViewDefinition) ([]shardview.KeyRange, error) {
	if q.HasKeys {
		out := make([]shardview.KeyRange, len(q.Keys))
		for i, key := range q.Keys {
			var err error
			if out[i], err = q.keyRange(of, key, key); err != nil {
				return nil, err
			}
		}
		if q.Descending && !q.Reduce {
			slices.Reverse(out)
		}
		return out, nil
	}
	r, err := q.keyRange(of, q.StartKey, q.EndKey)
	if err != nil || r.Lo.Key == nil && r.Hi.Key == nil {
		return nil, err
	}
	return []shardview.KeyRange{r}, nil
}

// keyRange returns the rows between two keys and, within those, the ids of the query.
func (q *Query) keyRange(of *shardview.ViewDefinition, from, to []byte) (r shardview.KeyRange, err error) {
	if r.Lo, err = bound(of, from, q.StartID, false); err != nil {
		return r, err
	}
	if r.Hi, err = bound(of, to, q.EndID, !q.InclusiveEnd); err != nil {
		return r, err
	}
	if q.Descending {
		r.Lo, r.Hi = r.Hi, r.Lo
	}
	return r, nil
}

func bound(of *shardview.ViewDefinition, key []byte, id string, exclusive bool) (b shardview.Bound, err error) {
	if key == nil {
		return b, nil
	}
	b = shardview.Bound{ID: id, HasID: id != "", Exclusive: exclusive}
	b.Key, err = of.AppendSortKey(nil, key)
	return b, err
}
