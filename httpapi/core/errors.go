package core

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"divan/storage/doc"
	"divan/storage/fault"
)

// wire is the status and the error name of one kind of error.
type wire struct {
	status int
	name   string
}

// wireOf is the one table from kinds of errors to status and error name
// (api.md section 2). A fault's Code replaces the name.
func wireOf(k fault.Kind) wire {
	switch k {
	case fault.BadRequest, fault.BadAuthorization:
		return wire{http.StatusBadRequest, "bad_request"}
	case fault.NotFound, fault.NoDatabase, fault.Deleted, fault.NoCopy:
		return wire{http.StatusNotFound, "not_found"}
	case fault.Conflict, fault.Purged:
		return wire{http.StatusConflict, "conflict"}
	case fault.Exists:
		return wire{http.StatusPreconditionFailed, "file_exists"}
	case fault.Unauthorized:
		return wire{http.StatusUnauthorized, "unauthorized"}
	case fault.Forbidden:
		return wire{http.StatusForbidden, "forbidden"}
	case fault.MissingStub:
		return wire{http.StatusPreconditionFailed, "missing_stub"}
	case fault.DocumentTooLarge:
		return wire{http.StatusRequestEntityTooLarge, "document_too_large"}
	case fault.AttachmentTooLarge:
		return wire{http.StatusRequestEntityTooLarge, "attachment_too_large"}
	case fault.RequestTooLarge:
		return wire{http.StatusRequestEntityTooLarge, "too_large"}
	case fault.BadContentType:
		return wire{http.StatusUnsupportedMediaType, "bad_content_type"}
	case fault.URITooLong:
		return wire{http.StatusRequestURITooLong, "too_long"}
	default:
		return wireOfRare(k)
	}
}

// wireOfRare is the rest of wireOf.
func wireOfRare(k fault.Kind) wire {
	switch k {
	case fault.IllegalDocID:
		return wire{http.StatusBadRequest, "illegal_docid"}
	case fault.IllegalDatabaseName:
		return wire{http.StatusBadRequest, "illegal_database_name"}
	case fault.DatabaseNameTooLong:
		return wire{http.StatusBadRequest, "database_name_too_long"}
	case fault.DocValidation:
		return wire{http.StatusBadRequest, "doc_validation"}
	case fault.QueryParse:
		return wire{http.StatusBadRequest, "query_parse_error"}
	case fault.IllegalPartition:
		return wire{http.StatusBadRequest, "illegal_partition"}
	case fault.PartitionOverflow:
		return wire{http.StatusForbidden, "partition_overflow"}
	case fault.InsufficientStorage:
		return wire{http.StatusInsufficientStorage, "insufficient_storage"}
	case fault.Timeout:
		return wire{http.StatusInternalServerError, "timeout"}
	case fault.Unavailable, fault.Closed, fault.Busy:
		return wire{http.StatusServiceUnavailable, "service unavailable"}
	case fault.NodeDown:
		return wire{http.StatusPreconditionFailed, "nodedown"}
	case fault.RangeNotSatisfiable:
		return wire{http.StatusRequestedRangeNotSatisfiable, "requested_range_not_satisfiable"}
	case fault.NotAcceptable:
		return wire{http.StatusNotAcceptable, "not_acceptable"}
	case fault.Gone:
		return wire{http.StatusGone, "gone"}
	case fault.InvalidDesignDoc:
		return wire{http.StatusBadRequest, "invalid_design_doc"}
	case fault.CompilationError:
		return wire{http.StatusBadRequest, "compilation_error"}
	case fault.MissingRev:
		return wire{http.StatusConflict, "not_found"}
	case fault.InvalidSelector:
		return wire{http.StatusBadRequest, "invalid_selector"}
	case fault.BadFunction:
		return wire{http.StatusInternalServerError, "unknown_error"}
	case fault.Misconfigured:
		return wire{http.StatusInternalServerError, "misconfigured_server"}
	default: // Internal, Corruption, and kinds that a newer node may send
		return wire{http.StatusInternalServerError, "internal_server_error"}
	}
}

// MethodError is a 405 with the endpoint's own Allow list.
type MethodError struct{ Allow string }

func (e *MethodError) Error() string { return "Only " + e.Allow + " allowed" }

// StatusError is an error with a status and a name of its own, where CouchDB has one
// that no kind of fault stands for.
type StatusError struct {
	Status       int
	Name, Reason string
}

func (e *StatusError) Error() string { return e.Reason }

// panicError is a panic that a request caused; the request's goroutine turns
// it into a 500.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return "panic while serving a request" }

// Failure is an error as it goes to a client: what fail writes as an answer
// and what a stream or a bulk answer writes as a part of itself.
type Failure struct {
	Status int
	Name   string // member "error"
	Reason string // member "reason"
	Ref    string // member "ref" (a number as text) of errors whose cause is only in the log, else empty
}

// Describe turns any error into what the client is told. The text of an error
// that is no *fault.Error never leaves the server: the client gets the number
// of the request under which the log has it.
func (c *Call) Describe(err error) Failure {
	var f *fault.Error
	var m *MethodError
	var s *StatusError
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return describeFault(errTooLong())
	case errors.As(err, &m):
		return Failure{Status: http.StatusMethodNotAllowed, Name: "method_not_allowed", Reason: m.Error()}
	case errors.As(err, &s):
		return Failure{Status: s.Status, Name: s.Name, Reason: s.Reason}
	case errors.As(err, &f) && f.Kind != fault.Internal && f.Kind != fault.Corruption:
		return describeFault(f)
	case errors.Is(err, context.Canceled) && c.gone(): // only the access log shows it
		return Failure{Status: http.StatusServiceUnavailable, Name: "service unavailable", Reason: "The client has gone."}
	case errors.Is(err, context.DeadlineExceeded):
		return Failure{
			Status: http.StatusInternalServerError, Name: "timeout",
			Reason: "The request could not be processed in a reasonable amount of time.",
		}
	default:
		return Failure{
			Status: http.StatusInternalServerError, Name: "internal_server_error",
			Reason: "An internal error occurred; the server's log has it under request id " + c.RequestID,
			Ref:    reference(c.RequestID),
		}
	}
}

// describeFault applies the table.
func describeFault(f *fault.Error) Failure {
	w := wireOf(f.Kind)
	out := Failure{Status: w.status, Name: w.name, Reason: f.Reason}
	if f.Code != "" {
		out.Name = f.Code
	}
	return out
}

// AppendJSON appends the failure as {"error":…,"reason":…}.
func (f Failure) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":`...)
	dst = doc.AppendString(dst, f.Name)
	dst = append(dst, `,"reason":`...)
	dst = doc.AppendString(dst, f.Reason)
	if f.Ref != "" {
		dst = append(dst, `,"ref":`...)
		dst = append(dst, f.Ref...)
	}
	return append(dst, '}')
}

// reference is the number that CouchDB's 500 answers carry as "ref": here it
// is made of the request id, so that the log line can be found by either.
func reference(requestID string) string {
	var n uint64 = 14695981039346656037 // FNV-1a
	for i := range len(requestID) {
		n = (n ^ uint64(requestID[i])) * 1099511628211
	}
	return strconv.FormatUint(n>>32, 10)
}
