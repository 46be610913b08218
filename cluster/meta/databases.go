package meta

import (
	"iter"

	"divan/cluster/meta/sortedset"
	"divan/shard/ring"
)

// Databases is the set of databases at one moment, sorted by the bytes of
// their names. It is immutable and costs nothing to keep.
type Databases struct{ sortedset.Set[*Database] }

func databasesOf(sorted []*Database) Databases { return Databases{sortedset.Of(sorted)} }

// Changing yields the databases with copies that are not full; it costs nothing while there
// are none.
func (d Databases) Changing() iter.Seq[*Database] { return d.Marked() }

// AnyChanging reports whether there is any.
func (d Databases) AnyChanging() bool {
	for range d.Changing() {
		return true
	}
	return false
}

// with returns the set with db added, in the place of one of the same name.
func (d Databases) with(db *Database) Databases { return Databases{d.With(db)} }

// without returns the set without the database of that name.
func (d Databases) without(name string) Databases { return Databases{d.Without(name)} }

// SortKey implements sortedset.Item.
func (d *Database) SortKey() string { return d.Name }

// Marked implements sortedset.Item: it reports whether a copy is not full, or comes instead of another one.
func (d *Database) Marked() bool {
	for i := range d.Shards {
		for _, c := range d.Shards[i].Copies {
			if c.State != ring.StateFull || c.Instead != "" {
				return true
			}
		}
	}
	return false
}
