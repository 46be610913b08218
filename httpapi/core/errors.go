package core

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"divan/storage/doc"
	"divan/storage/fault"
)

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

// describeFault applies the table of package fault.
func describeFault(f *fault.Error) Failure {
	out := Failure{Status: f.Kind.Status(), Name: f.Kind.Name(), Reason: f.Reason}
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
