package archive

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"divan/storage/format"
)

// MaxPage bounds a page, in bytes.
const MaxPage = 64 << 20

// Part returns which of the 256 parts of an index has a database.
func Part(database UUID) byte {
	sum := sha256.Sum256(database[:])
	return sum[0]
}

// Page is a part of an index.
type Page struct {
	Part      byte
	Databases []Database // ids ascend
}

// Database is a database as a backup has it. Its settings are in the metadata.
type Database struct {
	ID   UUID
	Name string
	// Moment is when it was taken, in Unix milliseconds; 0: at the cut of the backup.
	Moment uint64
	// Shards and Missing, ranges of which no copy was there, ascend and do not overlap.
	Shards  []Shard
	Missing []Range
}

// Shard holds the documents of a range in a backup.
type Shard struct {
	Range   Range
	MayLack bool            // fewer copies answered than a quorum
	Copy    UUID            // that led
	Totals  format.Counters // of that copy
	Print   uint64          // of that copy, a sum over its documents at their sequences
	Chain   []Step          // the base, then increments
	Fill    []Ref           // what that copy lacked, and names of contents of it
	Locals  []Ref
}

// Step is a base or an increment.
type Step struct {
	Range Range // more than that of the shard when a split came after it
	Upto  Position
	Refs  []Ref // tables, batches, names of contents
}

// Position is how far something goes, in the sequences of a copy.
type Position struct {
	Copy          UUID
	Seq, PurgeSeq uint64
}

// Position is where the next increment begins.
func (s *Shard) Position() Position {
	return Position{Copy: s.Copy, Seq: s.Totals.Seq, PurgeSeq: s.Totals.PurgeSeq}
}

// refs calls fn for all references of a shard.
func (s *Shard) refs(fn func(*Ref)) {
	for i := range s.Chain {
		eachRef(s.Chain[i].Refs, fn)
	}
	eachRef(s.Fill, fn)
	eachRef(s.Locals, fn)
}

func eachRef(refs []Ref, fn func(*Ref)) {
	for i := range refs {
		fn(&refs[i])
	}
}

func (db *Database) valid() bool {
	missing, from := db.Missing, uint64(0) // from: behind what was looked at
	next := func(r Range) bool {
		fits := r.valid() && uint64(r.Begin) >= from
		from = uint64(r.End) + 1
		return fits
	}
	for i := range db.Shards {
		s := &db.Shards[i]
		for len(missing) > 0 && missing[0].Begin < s.Range.Begin {
			if !next(missing[0]) {
				return false
			}
			missing = missing[1:]
		}
		if !next(s.Range) || !s.valid() {
			return false
		}
	}
	return !slices.ContainsFunc(missing, func(r Range) bool { return !next(r) })
}

func (s *Shard) valid() bool {
	for i := range s.Chain {
		if step := &s.Chain[i]; !step.Range.Covers(s.Range) || !allOf(step.Refs, KindTable, KindBatches, KindContents) {
			return false
		}
	}
	return len(s.Chain) > 0 && allOf(s.Fill, KindFill, KindContents) && allOf(s.Locals, KindLocals)
}

func allOf(refs []Ref, kinds ...Kind) bool {
	for i := range refs {
		if !refs[i].valid() || !slices.Contains(kinds, refs[i].Kind) {
			return false
		}
	}
	return true
}

// check finds what makes no sense in a page, written or read.
func (p *Page) check() error {
	for i := range p.Databases {
		db := &p.Databases[i]
		if Part(db.ID) != p.Part || i > 0 && bytes.Compare(p.Databases[i-1].ID[:], db.ID[:]) >= 0 {
			return damaged("a page has a database that does not belong there")
		}
		if !db.valid() {
			return damaged("a page has a shard that makes no sense")
		}
	}
	return nil
}
