package fault

import (
	"errors"
	"strconv"
)

// NewStaleMap refuses a request that was made by an older map of a database than the one
// of that generation.
func NewStaleMap(generation uint64) *Error {
	return &Error{Kind: StaleMap, Code: strconv.FormatUint(generation, 10), Reason: "The copies of the database have changed."}
}

// NewerMap returns the generation of the map by which a request was refused as one of an
// older map; 0 for any other error.
func NewerMap(err error) uint64 {
	var f *Error
	if !errors.As(err, &f) || f.Kind != StaleMap {
		return 0
	}
	generation, _ := strconv.ParseUint(f.Code, 10, 64) // 0: of no use
	return generation
}
