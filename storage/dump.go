package storage

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/bulkload"
)

// DumpOptions say how a snapshot is written as tables. All are required.
type DumpOptions struct {
	Sink bulkload.Sink
	// Looked hears now and then how many bytes were read since. Its error ends the work.
	Looked func(bytes int) error
}

// NewDump returns the dump of a snapshot, whose tables Restoring.Add takes. After an error of a
// method what the sink has got is of no use.
func NewDump(s *Snapshot, o DumpOptions) *bulkload.Dump {
	table := s.s.inst.WriterOptions(storeKind())
	table.WritingToLowestLevel = false // there deletions are obsolete, and not seen
	table.FilterPolicy = pebble.NoFilterPolicy
	return &bulkload.Dump{
		Source: s.snap, Counters: s.state.counters, Origins: s.state.origins,
		Table: table, Sink: o.Sink,
		Looked: func(bytes int) error {
			if err := errors.Join(s.s.Dropped(), s.s.Err()); err != nil {
				return err
			}
			return o.Looked(bytes)
		},
	}
}
