package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// EncodeFault turns an error into its message, nil into nil. Kind, code and
// reason of a *fault.Error survive, and whether the time of a call was over; of
// what caused it only the text does.
func EncodeFault(err error) *wirepb.Fault {
	if err == nil {
		return nil
	}
	out := &wirepb.Fault{}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Ending = wirepb.Ending_ENDING_DEADLINE
	case errors.Is(err, context.Canceled):
		out.Ending = wirepb.Ending_ENDING_CANCELED
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		out.Cause = err.Error()
		return out
	}
	out.Kind, out.Code, out.Reason = uint32(f.Kind), f.Code, f.Reason
	if f.Err != nil {
		out.Cause = f.Err.Error()
	}
	return out
}

// DecodeFault turns a message into an error, nil into nil: a *fault.Error when
// it was one, and one that errors.Is finds context.DeadlineExceeded or
// context.Canceled in when it ended so. Its strings are its own.
func DecodeFault(f *wirepb.Fault) error {
	if f == nil {
		return nil
	}
	var cause error
	if f.Cause != "" {
		cause = errors.New(strings.Clone(f.Cause))
	}
	switch f.Ending {
	case wirepb.Ending_ENDING_DEADLINE:
		cause = ending{context.DeadlineExceeded, cause}
	case wirepb.Ending_ENDING_CANCELED:
		cause = ending{context.Canceled, cause}
	default:
	}
	switch {
	case f.Kind != 0:
		return &fault.Error{Kind: fault.Kind(f.Kind), Code: strings.Clone(f.Code), Reason: strings.Clone(f.Reason), Err: cause}
	case cause == nil:
		return errors.New("an error without a text")
	default:
		return cause
	}
}

// ending is the end of a context on another node: it reads as what was said
// there.
type ending struct {
	is   error
	said error // may be nil
}

// Error implements error.
func (e ending) Error() string {
	if e.said != nil {
		return e.said.Error()
	}
	return e.is.Error()
}

// Unwrap makes errors.Is find the end of the context.
func (e ending) Unwrap() error { return e.is }

// unsent is the error of a call that never left this node, so that it may be repeated, or done
// elsewhere, even if it changes something.
type unsent struct{ error }

// NotSent reports that the other node got nothing of the call.
func (unsent) NotSent() bool { return true }

// Unwrap returns why.
func (u unsent) Unwrap() error { return u.error }

// down is the error of a call to a node that cannot be reached. A cause that
// says so already is it.
func down(node string, cause error) error {
	if fault.Is(cause, fault.NodeDown) {
		return cause
	}
	return fault.Wrap(fault.NodeDown, fmt.Sprintf("Node %s cannot be reached.", node), cause)
}
