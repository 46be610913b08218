package reduce

import (
	"bytes"
	"strconv"

	"divan/storage/doc"
)

// Limit is the setting reduce_limit: a result that is longer than Threshold
// bytes and, times Ratio, longer than what it was made from, is an error.
type Limit struct {
	Off       bool
	LogOnly   bool // what exceeds it is told in the log, and stays
	Threshold int
	Ratio     float64
}

// DefaultLimit returns the limit of a configuration that says nothing.
func DefaultLimit() Limit { return Limit{Threshold: 5000, Ratio: 2} }

// Exceeded reports whether out bytes are too many for in bytes of input.
func (l Limit) Exceeded(in, out int) bool {
	return !l.Off && out > l.Threshold && float64(out)*l.Ratio > float64(in)
}

// Refused reports whether so many bytes are an error.
func (l Limit) Refused(in, out int) bool { return !l.LogOnly && l.Exceeded(in, out) }

const overflowText = "Reduce output must shrink more rapidly: input size: "

// overflowContext ends the text: CouchDB names the view behind it where it knows it, which
// it does not in the answers to clients.
const overflowContext = " context: "

// OverflowReason is the text of the error for a result that is too long.
func OverflowReason(in, out int) string {
	return overflowText + strconv.Itoa(in) + " output size: " + strconv.Itoa(out) + overflowContext
}

// OverflowError is the error of a group for which a function in JavaScript returned
// too much. The other groups have their values.
type OverflowError struct{ Reason string }

// Error implements error.
func (e *OverflowError) Error() string { return e.Reason }

// overflowState is how the state of a function in JavaScript begins that is an error.
// It is JSON like all its states: indexes on disk hold it. A function that returns the
// same text itself has its row shown as an error.
const overflowState = `{"reduce_overflow_error":`

// AppendOverflow appends the state of a function in JavaScript that made so many
// bytes of so many.
func AppendOverflow(dst []byte, in, out int) []byte {
	return append(doc.AppendString(append(dst, overflowState...), OverflowReason(in, out)), '}')
}

// OverflowOf returns the reason of a state that AppendOverflow made.
func OverflowOf(state []byte) (reason string, is bool) {
	if !bytes.HasPrefix(state, []byte(overflowState+`"`+overflowText)) {
		return "", false
	}
	return doc.Unquote(state[len(overflowState) : len(state)-1])
}
