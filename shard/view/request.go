package view

import "divan/shard"

// Update says how fresh the answer of a query has to be.
type Update uint8

// The kinds of freshness.
const (
	UpdateBefore Update = iota // holds every edit that was acknowledged before the query came (update=true)
	UpdateAfter                // what the index holds, which is brought up to date afterwards (update=lazy)
	UpdateNever                // what the index holds (update=false)
)

// GroupExact as Request.GroupLevel makes a group of each distinct key.
const GroupExact = -1

// Request asks the index of one copy for the rows of one view.
type Request struct {
	Copy       string
	Signature  string // Definition.Signature
	Definition []byte // Definition.Text, from which the index is built when this node does not know it
	View       string
	Design     string // a design document that has the view, for _active_tasks
	Update     Update
	Ranges     []KeyRange // read one after the other, each in the direction; none: everything
	Desc       bool
	Limit      int    // hint: how many rows will be read; 0: all
	Partition  string // of a partitioned view: only this partition
	Reduce     bool   // one row per group instead of the rows
	GroupLevel int    // with Reduce; 0: each range is one group, n: keys that are arrays are cut to n elements, GroupExact
	// IncludeDocs adds the winner of each row's document, with Conflicts the
	// live leaves that lost. A document that the row's value names is the
	// coordinator's to fetch.
	IncludeDocs, Conflicts bool
	Uncounted              bool // Head.Total and Head.Offset are not wanted, and not counted
}

// KeyRange is a part of the rows, its ends in ascending order in either
// direction.
type KeyRange struct{ Lo, Hi Bound }

// Bound is an end of a range. Without an id a bound is before or behind all
// rows of its key.
type Bound struct {
	Key       []byte // sort key, ViewDefinition.AppendSortKey; nil: no bound
	ID        string
	HasID     bool // the bound is at (Key, ID)
	Exclusive bool
}

// Row is one row of an answer.
//
// Rows come in the order of Sort, then ID, both in the direction, then of their
// values, from the least in both directions. A reduced
// row has no id: Key is the group's, Sort what the sort keys of the group have in
// common (reduce.GroupSort), and Value the state of the reduce function over its
// rows. A Bound that is exclusive and has that as its Key lies behind the group
// as a lower one, and before it as an upper one.
type Row struct {
	Range            int32 // index in Request.Ranges
	Repeated         bool  // Doc has the content of the last document before it, and travels with that
	Sort, Key, Value []byte
	ID               string
	Doc              *shard.Doc // only with IncludeDocs; nil when the document is gone
}

// RepeatDoc gives a row a document that a row before it has. Its content is there once in memory.
func (r *Row) RepeatDoc(from *shard.Doc) {
	d := *from
	r.Doc, r.Repeated = &d, true
}

// Head is the metadata of an answer, known before its rows.
type Head struct {
	Total  uint64   // rows of the view, of the partition when one is asked for
	Offset uint64   // rows before the first row of the first range, in the direction
	Seq    uint64   // update sequence of the copy that the answer reflects
	UUID   [16]byte // of the copy
}
