// Package dbsetting has a row for each number that is set for a database by itself, like
// _revs_limit. A new one is a row here and the code that obeys it: its endpoint (httpapi/db), and
// what is brought from CouchDB (cmd/divan/migrate), come from the rows.
package dbsetting

import (
	"iter"
	"math"
	"strconv"

	"divan/storage/fault"
)

// Setting is one of them: its number in the log and the snapshots of the metadata, which is never
// given again.
type Setting uint32

// The settings.
const (
	RevsLimit        Setting = iota // how many generations of revisions are remembered
	PurgedInfosLimit                // how many entries the log of purges keeps per shard
	count
)

// rows says everything about the settings, by their numbers.
var rows = [count]struct {
	name     string // as in the path of its endpoint, after the underscore
	standard int    // of a new database: CouchDB's. It never changes, because it is not written down
	least    int
	refusal  string // of a value that is none: CouchDB's text
	version  uint64 // of the cluster, which all nodes have to know before it is set; 0: each does
}{
	RevsLimit:        {name: "revs_limit", standard: 1000, least: 1, refusal: "`revs_limit` must be a positive integer"},
	PurgedInfosLimit: {name: "purged_infos_limit", standard: 1000, least: 1, refusal: "`purged_infos_limit` must be positive integer"},
}

// All returns the settings in the order of their numbers.
func All() []Setting {
	out := make([]Setting, count)
	for i := range out {
		out[i] = Setting(i)
	}
	return out
}

// Known reports whether a number that was read is one of a setting.
func (s Setting) Known() bool { return s < count }

// Path returns the segment of the setting's endpoint below the database.
func (s Setting) Path() string { return "_" + rows[s].name }

// Version returns the version of the cluster that knows the setting.
func (s Setting) Version() uint64 { return rows[s].version }

// Check returns a fault.BadRequest for a value that the setting does not have.
func (s Setting) Check(value int) error {
	if value < rows[s].least || value > math.MaxInt32 {
		return fault.New(fault.BadRequest, rows[s].refusal)
	}
	return nil
}

// Parse reads a value from JSON. The error is a fault.BadRequest.
func (s Setting) Parse(text []byte) (int, error) {
	value, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, fault.New(fault.BadRequest, rows[s].refusal)
	}
	return value, s.Check(value)
}

// Values holds the value of each setting of one database.
type Values [count]int

// Standard returns the values of a new database.
func Standard() (v Values) {
	for i := range v {
		v[i] = rows[i].standard
	}
	return v
}

// Changed returns those that are not standard.
func (v Values) Changed() iter.Seq2[Setting, int] {
	return func(yield func(Setting, int) bool) {
		for i, value := range v {
			if value != rows[i].standard && !yield(Setting(i), value) {
				return
			}
		}
	}
}

// With returns the values with one of them changed.
func (v Values) With(s Setting, value int) Values {
	v[s] = value
	return v
}
