package storage

import (
	"errors"

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
	return &bulkload.Dump{
		Source: s.snap, Counters: s.state.counters, Origins: s.state.origins,
		Table: s.s.inst.WriterOptions(storeKind()), Sink: o.Sink,
		Looked: func(bytes int) error {
			if err := errors.Join(s.s.Dropped(), s.s.Err()); err != nil {
				return err
			}
			return o.Looked(bytes)
		},
	}
}
