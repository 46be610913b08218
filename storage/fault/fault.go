// Package fault holds the closed set of errors that are meant for a client.
//
// Every floor returns an *Error for a refusal that a client must understand; any
// other error is an internal one. Each Kind has one stable number, which crosses
// the wire between nodes, so numbers are never reused. What a Kind means to the
// floors, to other nodes and to a client is its row in the table of kinds.go.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what went wrong, independent of the text for people.
type Kind uint8

// The kinds. New ones are added at the end, with a row in kinds.go.
const (
	Internal            Kind = 1  // nothing a client can mend
	BadRequest          Kind = 2  // malformed input
	NotFound            Kind = 3  // database, document, revision, attachment, job, … unknown
	Conflict            Kind = 4  // the named revision is not a leaf
	Exists              Kind = 5  // the database is there already
	Unauthorized        Kind = 6  // no user is logged in, or the credentials are wrong
	Forbidden           Kind = 7  // a user is logged in, but may not
	MissingStub         Kind = 8  // an attachment stub without the earlier attachment
	DocumentTooLarge    Kind = 9  // reason: the document's id
	AttachmentTooLarge  Kind = 10 // reason: the attachment's name
	RequestTooLarge     Kind = 11 // the body of the request
	BadContentType      Kind = 12 // media type or content coding not supported
	IllegalDocID        Kind = 13 // document id
	IllegalDatabaseName Kind = 14 // database name
	DatabaseNameTooLong Kind = 15 // a path segment does not fit a file name
	DocValidation       Kind = 16 // bad underscore member of a document
	QueryParse          Kind = 17 // bad parameter of a view-like query
	IllegalPartition    Kind = 18 // name of a partition
	PartitionOverflow   Kind = 19 // the partition is full
	InsufficientStorage Kind = 20 // the disk is full
	Timeout             Kind = 21 // not done in time
	Unavailable         Kind = 22 // no copy, or no majority for metadata, can answer now
	NodeDown            Kind = 23 // the named node cannot be reached
	RangeNotSatisfiable Kind = 24 // Range header outside the attachment
	NotAcceptable       Kind = 25 // no representation fits the Accept header
	Gone                Kind = 26 // an endpoint that existed once
	InvalidDesignDoc    Kind = 27 // structural check of a design document
	CompilationError    Kind = 28 // a function of a design document does not compile
	MissingRev          Kind = 29 // the revision named by an attachment write is unknown
	URITooLong          Kind = 31 // the request's URI
	InvalidSelector     Kind = 32 // Mango: selector malformed; Code holds CouchDB's error name
	Closed              Kind = 33 // the node or the shard is shutting down
	Corruption          Kind = 34 // stored bytes do not decode, or a checksum fails
	BadAuthorization    Kind = 35 // credentials cannot even be read
	Purged              Kind = 36 // the copy has purged that revision; between nodes only
	NoCopy              Kind = 37 // the node does not hold the copy of the shard; mostly between nodes
	NoDatabase          Kind = 38 // NotFound of the database of a request
	Deleted             Kind = 39 // NotFound of a document whose winner is a tombstone
	BadFunction         Kind = 40 // a function of a design document failed, or got what it does not take; Code holds CouchDB's error name
	Busy                Kind = 41 // too many wait for the same: nothing was done, and the same may work in a moment
	StaleMap            Kind = 42 // the copy knows a newer map of its database: nothing was done; between nodes only, Code is the generation of that map
	Misconfigured       Kind = 43 // a setting makes no sense: an administrator has to mend it
)

// Error is a refusal with a text for the client.
type Error struct {
	Kind   Kind
	Code   string // overrides the error name of Kind on the wire where CouchDB has several for one Kind; usually empty
	Reason string // text for the client, part of the protocol
	Err    error  // what caused it, for the log; may be nil
}

// New returns an error of that kind with that text.
func New(k Kind, reason string) *Error { return &Error{Kind: k, Reason: reason} }

// Newf is New with a format.
func Newf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Reason: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of that kind and text that keeps its cause.
func Wrap(k Kind, reason string, err error) *Error { return &Error{Kind: k, Reason: reason, Err: err} }

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, Internal for an error that has none, and 0
// for nil.
func KindOf(err error) Kind {
	if err == nil {
		return 0
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	return Internal
}

// Is reports whether err is of that kind. NoDatabase and Deleted are NotFound as
// well.
func Is(err error, k Kind) bool {
	if err == nil {
		return false
	}
	is := KindOf(err)
	return is == k || k == NotFound && (is == NoDatabase || is == Deleted)
}

// Reason returns the text for the client, empty for an error that has none.
func Reason(err error) string {
	var f *Error
	if errors.As(err, &f) {
		return f.Reason
	}
	return ""
}
