package endpoint

import (
	"context"
	"io"
	"time"

	"divan/shard"
	"divan/storage/doc"
)

// Seq is a position in the changes of a source: JSON text as the source gave
// it, opaque. Empty: the beginning.
type Seq string

// Database holds the methods that sources and targets share. It is safe for concurrent use.
type Database interface {
	// Info describes the database. It is asked first, and tells whether the
	// database is there and the credentials open it.
	Info(ctx context.Context) (Info, error)
	// Local returns the body of a local document, without underscore members,
	// and its revision; fault.NotFound when there is none. id comes without
	// "_local/".
	Local(ctx context.Context, id string) (body []byte, rev string, err error)
	// PutLocal writes a local document over the revision that was read, empty for a new one, and
	// returns the new revision. fault.Conflict: another writer was there in between.
	PutLocal(ctx context.Context, id, rev string, body []byte) (newRev string, err error)
	// Commit makes what was written durable and returns instance_start_time.
	Commit(ctx context.Context) (instanceStart string, err error)
	// Close gives back connections. Nothing may be under way.
	Close() error
}

// Info describes a database.
type Info struct {
	Name          string
	InstanceStart string // instance_start_time: changes when the database is made anew
	UpdateSeq     Seq
	Documents     uint64 // doc_count and doc_del_count together, for progress
}

// Source is the side that is read.
type Source interface {
	Database
	// Changes opens the changes behind q.Since, all leaves of each document.
	Changes(ctx context.Context, q ChangesQuery) (Feed, error)
	// Fetch reads revisions and calls take once for each that is there, in any order, never twice
	// at once. What take gets is valid until it returns, but for Doc and what it refers to, which
	// may be kept. The same holds for FetchOptions.Refused. One that is not there any more is left
	// out. Contents is nil where nothing follows. An error of take ends it and is returned, unless
	// it was the contents that broke off: then take may be called again for the same revision.
	Fetch(ctx context.Context, o FetchOptions, wanted []Wanted, take func(*Doc, Contents) error) error
	// Design returns a design document as JSON, for the text of a filter
	// function; fault.NotFound when there is none.
	Design(ctx context.Context, id string) ([]byte, error)
	// Pending returns how many changes there are behind a position; -1 when the
	// source cannot tell.
	Pending(ctx context.Context, since Seq) (int64, error)
}

// Target is the side that is written.
type Target interface {
	Database
	// Create makes the database; one that is there already is no error.
	Create(ctx context.Context, o CreateOptions) error
	// Missing tells which revisions the target does not have: an entry for each
	// id of which something is missing, in any order (_revs_diff).
	Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error)
	// Write stores revisions as they are (new_edits=false). Attachments are
	// stubs or have their Data. It returns those that were refused; every other
	// one is stored. An error says that it is not known of any.
	// fault.RequestTooLarge: the target takes no such amount at once.
	Write(ctx context.Context, docs []*Doc) ([]Refused, error)
	// WriteWith stores one revision whose attachments come from contents, in
	// the order of d.Atts. The refusal is the error.
	WriteWith(ctx context.Context, d *Doc, contents Contents) error
}

// ChangesQuery selects changes.
type ChangesQuery struct {
	Since      Seq
	Continuous bool          // the feed does not end, but waits
	Heartbeat  time.Duration // of a continuous feed over a network: how often a sign of life comes
	Batch      int           // rows that are read together; a hint, for seq_interval
	WinnerOnly bool          // winning_revs_only: the winner instead of all leaves
	Filter     Filter
}

// Filter selects documents; at most one of them is set.
type Filter struct {
	DocIDs   []string
	HasIDs   bool // DocIDs counts, be it empty
	Selector []byte
	Function string // "design/name", or a built-in one like "_design"
	// Query are the parameters of a function: names and values as in a query
	// string.
	Query [][2]string
}

// Feed is changes in order. It belongs to one goroutine.
type Feed interface {
	// Next fills rows and returns how many it has filled, one at least: fewer
	// than there are where they are large. A continuous feed waits until there is one, and
	// returns what is there then. At the end of one that does not wait, the error is
	// io.EOF. What rows refer to may be kept.
	Next(ctx context.Context, rows []Change) (int, error)
	// Last returns the position behind everything that was looked at, rows
	// that a filter held back included.
	Last() Seq
	// Close ends the feed and what it has under way.
	Close()
}

// Change is a document that has changed.
type Change struct {
	ID   string
	Revs []doc.Rev // leaves, the winner first
	Seq  Seq       // may be empty in the middle of a batch
}

// Size is about how much memory a change takes, in bytes.
func (c *Change) Size() int {
	const fixed, perRev = 100, 70
	return fixed + len(c.ID) + len(c.Seq) + perRev*len(c.Revs)
}

// Wanted are revisions of one document.
type Wanted struct {
	ID   string
	Revs []doc.Rev
	// Ancestors are revisions that the target has: attachments that came with
	// them or before are stubs.
	Ancestors []doc.Rev
}

// FetchOptions say how revisions are read.
type FetchOptions struct {
	NoBulkGet bool // one document at a time
	// WholeAttachments: no stubs, even for attachments that the target has.
	WholeAttachments bool
	// Refused, when set, is told of revisions that are there but that no target would
	// take, as they are too large or no proper documents; its error ends Fetch. nil: the
	// first one ends it.
	Refused func(id string, rev doc.Rev, err error) error
}

// Doc is one revision of a document on its way. It holds no content of large
// attachments.
type Doc struct {
	ID      string
	Path    doc.Path // the revision and its ancestors, newest first
	Deleted bool
	// Body is the canonical text of the object without underscore members, as
	// doc.ParseEnvelope gives it.
	Body []byte
	Atts []Attachment
}

// Size is about how much memory a revision takes, in bytes.
func (d *Doc) Size() int {
	const fixed, perRev, perAttachment = 150, 40, 250
	n := fixed + len(d.ID) + len(d.Body)
	for _, id := range d.Path.IDs {
		n += perRev + len(id)
	}
	for i := range d.Atts {
		a := &d.Atts[i]
		n += perAttachment + len(a.Name) + len(a.ContentType) + len(a.Data)
	}
	return n
}

// Attachment is an attachment of a revision on its way.
type Attachment struct {
	doc.Attachment // Key has a meaning only to the source
	// Stub: the target has the content already.
	Stub bool
	// Data is the stored bytes, when they are small; nil with a content that
	// follows.
	Data []byte
}

// Follows reports whether the content has to be read from Contents.
func (a *Attachment) Follows() bool { return !a.Stub && a.Data == nil }

// Follows reports whether d has an attachment whose content is not with it.
func (d *Doc) Follows() bool {
	for i := range d.Atts {
		if d.Atts[i].Follows() {
			return true
		}
	}
	return false
}

// Contents gives the contents of the attachments that follow, one after the
// other in the order of Doc.Atts; each is read to its end, or closed, before the
// next one. Content is as stored: a gzip stream where Attachment.Gzip is set.
type Contents interface {
	Next(ctx context.Context) (io.ReadCloser, error)
}

// CreateOptions are the parameters of a new database; names and values as in
// the query string of PUT /{db}.
type CreateOptions struct{ Query [][2]string }

// Refused is a revision that the target did not take, and why: Forbidden or
// Unauthorized by a validation function, DocumentTooLarge, MissingStub when
// it does not have the content of a stub.
type Refused struct {
	ID  string
	Rev doc.Rev
	Err error
}
