package shard

import (
	"context"
	"slices"

	"divan/storage/doc"
)

// AdminRole is the role of server administrators (semantics.md section 6).
const AdminRole = "_admin"

// User is the user of a request: the userCtx of semantics.md section 5.2.
type User struct {
	Name      string // empty when Anonymous
	Anonymous bool
	Roles     []string
}

// Admin reports whether the user is a server administrator.
func (u User) Admin() bool { return slices.Contains(u.Roles, AdminRole) }

// Edit is one wish to change one document. An id that starts with "_local/"
// makes it the write of a local document, whose revisions only count
// (semantics.md section 3).
type Edit struct {
	ID      string
	Parent  doc.Rev  // interactive: the revision the client named, zero when none
	Path    doc.Path // replicated, or decided by another copy: the new revision and its ancestors, newest first
	Deleted bool
	Body    []byte // as doc.ParseEnvelope gives it; stored as doc.StoredBody does
	Atts    []EditAttachment
}

// EditAttachment is one attachment of an Edit: a stub (content of the parent
// or nearest stored ancestor), small content in Data, or content that
// Attachments.Put has stored already under Key.
type EditAttachment struct {
	doc.Attachment
	Stub      bool   // take everything but the name from the revision before
	HasRevPos bool   // RevPos counts: of a stub as what it must agree with, of new content as it is; of a stub between copies Digest counts as well
	Data      []byte // the stored bytes of small new content; nil: they are stored under Key
}

// EditResult answers one Edit.
type EditResult struct {
	Rev doc.Rev // the new revision; of a local document 0-N
	// Path is Rev and its ancestors within the limit of revisions, and the parent of an
	// interactive edit in any case.
	Path doc.Path
	// Kept lists the attachments that the stubs of the edit stand for, in their
	// order: another copy may have another nearest ancestor. Empty when NoPath
	// was asked for.
	Kept     []doc.Attachment
	Err      error // a *fault.Error for a refusal
	Accepted bool  // set by the coordinator: fewer copies than asked for have it
}

// Limits are the database's limits as the metadata holds them.
type Limits struct {
	Revs             int   // _revs_limit; 0 = DefaultRevsLimit
	PurgedInfos      int   // _purged_infos_limit; 0 = DefaultPurgedInfosLimit
	Partitioned      bool  // ids are partition:id
	MaxPartitionSize int64 // bytes (external); 0 = no limit
}

// Defaults of the limits, as CouchDB has them.
const (
	DefaultRevsLimit        = 1000
	DefaultPurgedInfosLimit = 1000
)

// DecideRequest is edits of clients for one copy, decided in order.
type DecideRequest struct {
	Copy     string
	Open     OpenCopy // the copy, when it was opened for the request already; it does not travel
	Edits    []Edit
	NewEdits bool // interactive: conflicts are refused, revisions made; else merged as they are
	Limits   Limits
	User     User
	DB       string // name of the database, for the validation functions
	Security []byte // security object of the database, JSON
	Delayed  bool   // batch=ok: answer when applied, not when durable
	NoPath   bool   // EditResult.Path is not needed: it stays empty
	// Insist says that the sender still waits, and has been told that a
	// revision has been purged: what a client wants is done all the same. Without
	// it an edit gets fault.Purged when this copy has purged the revision that it
	// makes. The edit may be late, then: sent, answered by another copy and purged
	// before it came here.
	Insist bool
}

// FollowRequest is revisions for one copy that another copy has decided.
type FollowRequest struct {
	Copy      string
	Open      OpenCopy // as in DecideRequest
	Edits     []Edit   // with Path; local documents count on from Path or Parent
	RevsLimit int      // as Limits.Revs
	// PurgesSeen, when set, is the purge sequence of the copy up to which the
	// sender has taken the copy's purges into account: the request is refused
	// with fault.Conflict as a whole when there are later ones of its documents,
	// because one of its revisions may have been purged.
	PurgesSeen *uint64
}

// Validate decides whether an edit of a regular document may be written; it
// returns a *fault.Error for a refusal. It is called on the goroutine of the
// request, never on the writer's, and may be called again when the document
// has changed in the meantime.
type Validate func(ctx context.Context, r ValidateRequest) error

// ValidateRequest is the input of a validation function (semantics.md section
// 5.2).
type ValidateRequest struct {
	DB       string
	User     User
	Security []byte
	New      *Doc // Rev: interactive the parent the client named (zero: none), replicated the new revision
	Old      *Doc // the revision it replaces; nil when there is none or it is a tombstone being re-created
}

// OpenRequest asks for one revision of one document.
type OpenRequest struct {
	Copy, ID         string
	Rev              doc.Rev // zero: the winner
	Latest           bool    // ignore Rev: the winner (api.md section 9.1)
	Revs             bool    // fill in Doc.Revisions
	RevsInfo         bool    // the next four act on the winner only
	Conflicts        bool
	DeletedConflicts bool
	LocalSeq         bool
	AllowDeleted     bool // the winner may be a tombstone
	HeadOnly         bool // the body is not wanted
	RevOnly          bool // of the winner only Rev and Deleted are wanted; the rest may be missing
	RevsLimit        int  // at most so many ids in Revisions; 0 = all
}

// Doc is one revision of a document as stored.
type Doc struct {
	ID               string
	Rev              doc.Rev
	Deleted          bool
	Body             []byte // canonical JSON object text without underscore members
	Atts             []doc.Attachment
	Revisions        doc.Path // empty unless asked for
	RevsInfo         []RevInfo
	Conflicts        []doc.Rev // live leaves that lost, best first
	DeletedConflicts []doc.Rev // deleted leaves that lost, best first
	LocalSeq         uint64    // 0 unless asked for
}

// RevInfo tells what is left of one revision.
type RevInfo struct {
	Rev    doc.Rev
	Status string // StatusAvailable, StatusMissing, StatusDeleted
}

// The words of _revs_info.
const (
	StatusAvailable = "available" // the body is stored
	StatusMissing   = "missing"   // known by id only
	StatusDeleted   = "deleted"   // a stored tombstone
)

// OpenRevsRequest asks for several revisions of one document.
type OpenRevsRequest struct {
	Copy, ID  string
	Revs      []doc.Rev
	All       bool // every leaf; Revs is not looked at
	Latest    bool // for each of Revs the leaves that descend from it
	WithPath  bool // fill in Doc.Revisions
	HeadOnly  bool // the bodies are not wanted
	RevOnly   bool // nor what else belongs to a revision: only which there are
	RevsLimit int  // at most so many ids in Revisions; 0 = all
	MaxBytes  int  // of the documents together (Doc.Size), unless there is but one; 0: no bound
}

// RevResult is one answer to an OpenRevsRequest.
type RevResult struct {
	Rev doc.Rev
	Doc *Doc // nil: not stored here
}

// IDRevs names revisions of one document.
type IDRevs struct {
	ID   string
	Revs []doc.Rev
}

// IDMissing tells which of the revisions asked about are unknown here, and
// which leaves they may descend from. Both empty: everything is known.
type IDMissing struct {
	ID                string
	Missing           []doc.Rev // in the order asked, repetitions kept
	PossibleAncestors []doc.Rev
}

// DocsRequest asks for the live documents whose ids lie between two bounds.
type DocsRequest struct {
	Copy        string
	Lo          string // lower bound in either direction; empty: from the first
	LoExclusive bool
	Hi          string // upper bound; only when HasHi
	HasHi       bool
	HiExclusive bool
	Desc        bool
	IncludeDocs bool
	Conflicts   bool // with IncludeDocs: fill in Doc.Conflicts
	// DeletedConflicts fills in Doc.DeletedConflicts, with IncludeDocs. It is for
	// readers on this node: it does not travel.
	DeletedConflicts bool
	Limit            int // hint: how many rows will be read; 0 = unknown
}

// Row is one row of a listing by id. Its strings are parts of one allocation
// of the whole batch: clone what outlives it.
type Row struct {
	ID      string
	Rev     doc.Rev // the winner
	Deleted bool    // only in DocsByID
	Missing bool    // only in DocsByID
	Doc     *Doc    // nil unless asked for, and for deleted or missing documents
}

// ChangesRequest asks for the changes of one copy in the order they happened.
type ChangesRequest struct {
	Copy        string
	Since       uint64 // exclusive
	Desc        bool   // newest first, down to Since
	AllLeaves   bool   // style=all_docs
	Filter      Filter
	IncludeDocs bool
	Conflicts   bool // with IncludeDocs: fill in Doc.Conflicts
	// DeletedConflicts fills in Doc.DeletedConflicts, with IncludeDocs. It is for
	// readers on this node: it does not travel.
	DeletedConflicts bool
	Limit            int // hint: how many rows will be read; 0 = unknown
}

// Change is one row of a changes feed. Its strings are parts of one allocation
// of the whole batch: clone what outlives it.
type Change struct {
	Seq     uint64
	ID      string
	Leaves  []doc.Rev // winner first; one entry unless AllLeaves
	Deleted bool      // the winner is a tombstone
	Doc     *Doc      // the winner; nil unless asked for
}

// FilterKind names a built-in filter of the changes feed.
type FilterKind uint8

// The built-in filters (semantics.md section 13).
const (
	FilterNone     FilterKind = iota
	FilterDocIDs              // only the documents named in Filter.IDs
	FilterDesign              // only design documents
	FilterSelector            // only leaves that match Filter.Selector
	FilterFunction            // only leaves that a filter function of a design document lets through
	FilterView                // only leaves for which the map function of a view emits something
)

// Filter is data only, so that it can travel to another node; a selector's text
// is compiled where it runs, by Options.CompileSelector, and functions are found
// there, by Options.CompileFunction.
type Filter struct {
	Kind     FilterKind
	IDs      []string
	Selector []byte // JSON text of a Mango selector
	Function FilterFunc
}

// FilterFunc names a function of a design document.
type FilterFunc struct {
	DB      string
	Design  string  // id of the design document
	Rev     doc.Rev // its revision when the feed began
	Name    string  // of the filter, or of the view
	Request []byte  // the request object that a filter is given, JSON
}

// BatchMatcher is a filter made ready, a selector or a function of a design document:
// it tells which of some documents pass. They are given with _id, _rev, _deleted and
// _attachments (as stubs), to functions with _revisions as well. It belongs to one feed.
type BatchMatcher func(ctx context.Context, docs [][]byte) ([]bool, error)

// AttachmentRange names stored bytes of an attachment.
type AttachmentRange struct {
	Copy, ID       string
	Key            [16]byte
	Offset, Length int64 // bytes; a negative length means to the end
}

// LocalDoc is a local document (semantics.md section 3).
type LocalDoc struct {
	ID   string // with "_local/"
	Rev  uint64 // the N of 0-N
	Body []byte // canonical JSON object text without underscore members
}

// DocRev returns the revision as clients see it, 0-N.
func (l *LocalDoc) DocRev() doc.Rev { return localRev(l.Rev) }

// LocalDocsRequest asks for the local documents whose ids (with "_local/") lie
// between two bounds.
type LocalDocsRequest struct {
	Copy        string
	Lo          string
	LoExclusive bool
	Hi          string
	HasHi       bool
	HiExclusive bool
	Desc        bool
	System      bool // also the checkpoints of the server itself (shard-sync, purge)
}

// PurgeItem asks for the removal of leaves of one document for good.
type PurgeItem struct {
	UUID [16]byte // the same on every copy; zero: one is made
	ID   string
	Revs []doc.Rev
	// Paths are the paths that other copies know of the revisions that they
	// removed; empty when the purge comes from a client. See PurgeInfo.
	Paths []doc.Path
}

// PurgeResult lists what was removed: those of the revisions that were leaves.
type PurgeResult struct {
	ID     string
	Purged []doc.Rev
}

// PurgeInfo is one entry of the purge log.
type PurgeInfo struct {
	Seq  uint64
	UUID [16]byte
	ID   string
	Revs []doc.Rev // as requested
	// Paths are the known paths of the revisions that were removed: each with
	// its ancestors, newest first, unless that is nothing but one of Revs. A
	// later entry of the same UUID has all that an earlier one has.
	Paths []doc.Path
}

// Info describes one copy. Everything in it is maintained, nothing counted.
type Info struct {
	UUID        [16]byte
	Live        uint64 // documents whose winner is no tombstone
	Deleted     uint64 // documents whose winner is one
	Seq         uint64
	PurgeSeq    uint64
	External    int64 // bytes: bodies and attachments as clients see them
	Active      int64 // bytes: what the leaves take
	File        int64 // bytes on disk
	Compacting  bool
	PurgeOldest uint64 // first purge sequence still in the log; 0: none
}

// PartitionInfo describes one partition of one copy.
type PartitionInfo struct {
	Live, Deleted    uint64
	External, Active int64
}

// Compaction tells how far a running compaction is.
type Compaction struct {
	Copy      string
	DB        string // as given to Compact
	StartedMS int64  // unix time, milliseconds
	UpdatedMS int64
	Done      uint64 // documents looked at
	Total     uint64 // documents there are
}
