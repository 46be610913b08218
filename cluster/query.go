package cluster

import (
	"time"

	"divan/cluster/sequence"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/memory"
)

// NoLimit as a limit, like any negative number, means all rows.
const NoLimit = -1

// Namespace says which documents a listing is about.
type Namespace uint8

// The namespaces of listings by id.
const (
	AllDocs    Namespace = iota // _all_docs: all but local documents
	DesignDocs                  // _design_docs
	LocalDocs                   // _local_docs
)

// CreateOptions are the parameters of PUT /{db}; the zero value of each means
// the configured default.
type CreateOptions struct {
	Q           int    // ranges
	N           int    // copies of each range; cut to the number of nodes
	Placement   string // "zone:n[,zone:n…]"; overrides N
	Partitioned bool
}

// NameRange selects names of databases for _all_dbs.
type NameRange struct {
	StartKey, EndKey *string // nil: unbounded; in the direction of the listing
	InclusiveEnd     bool
	Descending       bool
	Skip             int
	Limit            int // negative: no limit
}

// UpdateOptions say how a list of edits is to be written.
type UpdateOptions struct {
	NewEdits bool // interactive; false: replicated edits, merged as they are
	W        int  // copies that must be durable before the answer; 0: more than half
	User     shard.User
	Delayed  bool // batch=ok: answer when applied, not when durable
}

// OpenOptions ask for one revision of one document; see shard.OpenRequest for
// what each means.
type OpenOptions struct {
	ID               string
	Rev              doc.Rev // zero: the winner
	Latest           bool
	Revs             bool
	RevsInfo         bool
	Conflicts        bool
	DeletedConflicts bool
	LocalSeq         bool
	AllowDeleted     bool
	HeadOnly         bool
	R                int // copies that must agree; 0: more than half
	// Strict, with R other than 1, makes it an error when fewer than R copies can answer: else
	// those that can are enough.
	Strict bool
}

// OpenRevsOptions ask for several revisions of one document.
type OpenRevsOptions struct {
	ID       string
	Revs     []doc.Rev
	All      bool // every leaf; Revs is not looked at
	Latest   bool // for each of Revs the leaves that descend from it
	WithPath bool // fill in Doc.Revisions, at most _revs_limit ids
	R        int  // copies that are asked; 0: more than half
	// MaxBytes bounds, about, the documents that OpenRevsMany reads; that of the first
	// one counts for all. What is beyond has fault.RequestTooLarge and is to be asked
	// for again, with OpenRevs when it is all of the list. 0: no bound.
	MaxBytes int
	// Memory counts what OpenRevs reads while it is read; nil: nothing does.
	Memory memory.Holder
}

// DocsQuery selects rows by document id, for _all_docs, _design_docs and
// _local_docs.
type DocsQuery struct {
	Namespace        Namespace
	StartKey, EndKey *string // nil: unbounded; in the direction of the listing
	InclusiveEnd     bool
	Descending       bool
	Keys             []string // with HasKeys: these ids, in this order (backwards when Descending)
	HasKeys          bool
	Skip             int
	Limit            int    // negative: no limit
	Partition        string // not empty: only documents of this partition
	IncludeDocs      bool
	Conflicts        bool // with IncludeDocs: Doc.Conflicts is filled in
	UpdateSeq        bool // DocRows.UpdateSeq is filled in
	System           bool // LocalDocs: also the server's own checkpoints
	// Memory counts documents of Keys that wait for their rows; nil: nothing does.
	Memory memory.Holder
}

// ChangesQuery selects rows of a changes feed.
type ChangesQuery struct {
	Since       sequence.Seq // not looked at when Descending
	Descending  bool
	AllLeaves   bool // style=all_docs
	Limit       int  // rows at most over the life of the feed; 0 acts like 1; negative: no limit
	Filter      shard.Filter
	IncludeDocs bool
	Conflicts   bool // with IncludeDocs: Doc.Conflicts is filled in
	// Beat, when not nil, is called by Next before it waits for a filter, and again after the
	// time that it has returned, so that the caller can send a heartbeat when one is due.
	Beat func() time.Duration
}
