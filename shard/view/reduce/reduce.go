package reduce

import (
	"strconv"
	"strings"

	"divan/storage/fault"
)

// Row is a row that a map function emitted, as a reduce function sees it. Key
// and Value are JSON texts, Sort is the sort key of Key.
type Row struct {
	Sort, Key []byte
	ID        string
	Value     []byte
}

// Function is a reduce function. It is safe for concurrent use and keeps
// nothing of what it is given.
type Function interface {
	// Reduce appends the state of rows, which are in their order in the view.
	Reduce(dst []byte, rows []Row) ([]byte, error)
	// Rereduce appends the state of states, which are in the order of their keys.
	Rereduce(dst []byte, states [][]byte) ([]byte, error)
	// Final appends the JSON that a client gets for a state.
	Final(dst, state []byte) ([]byte, error)
}

// maxRank is how many values _top_N and _bottom_N may keep.
const maxRank = 100

// Builtin returns the built-in function that the source of a reduce function
// names: nil for JavaScript, fault.InvalidDesignDoc for a name that is none. As
// in CouchDB a name may go on behind that of a function: _summary is _sum.
func Builtin(source string) (Function, error) { return BuiltinWithin(source, DefaultLimit) }

// builtin is a function that a name, or one that begins with it, stands for.
type builtin struct {
	name     string
	function Function
}

// builtins are the functions that have one name; _top_N and _bottom_N have many.
func builtins(limit func() Limit) []builtin {
	return []builtin{
		{"_sum", sum{limit}},
		{"_count", count{}},
		{"_stats", stats{}},
		{"_approx_count_distinct", distinct{}},
		{"_first", end{}},
		{"_last", end{last: true}},
	}
}

// BuiltinWithin is Builtin with a limit on the size of sums, which is asked for
// whenever a state is made.
func BuiltinWithin(source string, limit func() Limit) (Function, error) {
	if !strings.HasPrefix(source, "_") {
		return nil, nil //nolint:nilnil // JavaScript: neither a built-in function nor an error
	}
	for _, f := range builtins(limit) {
		if strings.HasPrefix(source, f.name) {
			return f.function, nil
		}
	}
	if n, ok := strings.CutPrefix(source, "_top_"); ok {
		return newRank(n, true)
	}
	if n, ok := strings.CutPrefix(source, "_bottom_"); ok {
		return newRank(n, false)
	}
	return nil, fault.Newf(fault.InvalidDesignDoc, "`%s` is not a supported reduce function.", source)
}

func newRank(n string, top bool) (Function, error) {
	keep, err := strconv.Atoi(n)
	if err != nil {
		return nil, fault.New(fault.InvalidDesignDoc, "invalid rank reducer")
	}
	if keep < 1 || keep > maxRank {
		return nil, fault.Newf(fault.InvalidDesignDoc, "rank value must be between 1 and %d", maxRank)
	}
	return rank{keep, top}, nil
}
