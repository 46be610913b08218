package script

import (
	"encoding/json"
	"errors"
	"fmt"

	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// thrown is an exception of a script, as couchjs reports it: ["error", name,
// reason].
type thrown struct {
	level        string // "error" or "fatal"
	name, reason string
}

// Error implements error.
func (t *thrown) Error() string { return t.name + ": " + t.reason }

// errFatal is in the error of what a function threw to end the whole request.
var errFatal = errors.New("fatal")

// fatal is the error of what is more than an exception, nil for all that only skips the
// rows of one function. That the stack is over, that something is larger than is
// written, or that a guard refuses a call, leaves the document out of the index, which
// says so. The engine says the first of nested JSON and sources as well.
func (t *thrown) fatal() error {
	switch {
	case t.level == "fatal":
		return t.whole()
	case t.name == "unnamed_error" && t.reason == "fatal_error":
		return (&thrown{"error", "map_runtime_error", "function raised 'fatal_error'"}).whole()
	case (t.name == "InternalError" || t.name == "SyntaxError") && t.reason == "stack overflow":
		return &fault.Error{Kind: fault.BadFunction, Code: "stack_overflow", Reason: "The script calls functions more deeply than the stack allows."}
	case t.name == "InternalError" && t.reason == tooMuchWork:
		return &fault.Error{Kind: fault.BadFunction, Code: "too_much_work", Reason: "The script asks a built-in function for too much work in one call."}
	case t.name == "InternalError" && (t.reason == nestedTooDeeply || t.reason == arrayTooLarge):
		return &fault.Error{Kind: fault.BadFunction, Code: "too_large", Reason: "What the script gives out is too large: " + t.reason + "."}
	}
	return nil
}

// whole is the fault of a whole request.
func (t *thrown) whole() error {
	f := t.fault()
	f.Err = errFatal
	return f
}

// fault returns the exception as an error for clients. The names that CouchDB
// knows keep their status.
func (t *thrown) fault() *fault.Error {
	kind := fault.BadFunction
	switch t.name {
	case "not_found":
		kind = fault.NotFound
	case "forbidden":
		kind = fault.Forbidden
	case "unauthorized":
		kind = fault.Unauthorized
	case "bad_request":
		kind = fault.BadRequest
	case "conflict":
		kind = fault.Conflict
	case "not_acceptable":
		kind = fault.NotAcceptable
	}
	return &fault.Error{Kind: kind, Code: t.name, Reason: t.reason}
}

// exceptions makes errors of the exceptions that are pending in a realm.
type exceptions struct {
	realm   *realm
	sandbox *sandbox
	encoder *encoder
}

// take takes the pending exception. It is nil after time-outs and when memory
// was refused: stopped says which.
func (x *exceptions) take() *thrown {
	e := lib.XJS_GetException(x.realm.tls, x.realm.ctx)
	defer x.realm.free(e)
	if x.realm.limits.stopped() != nil {
		return nil
	}
	return x.describe(e)
}

// describe asks the sandbox what e is. Even that may throw: getters.
func (x *exceptions) describe(e value) *thrown {
	unknown := &thrown{"error", "unnamed_error", "an exception that cannot be shown"}
	d := x.sandbox.invoke("describe", e)
	if isException(d) {
		x.realm.dropException()
		return unknown
	}
	defer x.realm.free(d)
	mark := x.encoder.mark()
	defer func() { x.encoder.cut(mark) }()
	if _, ok := x.encoder.encode(d); !ok {
		x.realm.dropException()
		return unknown
	}
	var parts [3]string
	if json.Unmarshal(x.encoder.since(mark), &parts) != nil {
		return unknown
	}
	return &thrown{parts[0], parts[1], parts[2]}
}

// err is the error of a pending exception that no script has thrown on purpose.
func (x *exceptions) err() error {
	if t := x.take(); t != nil {
		return t.fault()
	}
	return x.realm.limits.stopped()
}

// failed makes an error of a failure of the engine itself, while it is set up.
func (x *exceptions) failed() error {
	if t := x.take(); t != nil {
		return fmt.Errorf("set up the sandbox: %w", t)
	}
	if err := x.realm.limits.stopped(); err != nil {
		return fmt.Errorf("set up the sandbox: %w", err)
	}
	return errors.New("set up the sandbox")
}
