package search

import (
	"context"

	"divan/shard/index"
	"divan/shard/search/postings"
	"divan/storage/fault"
)

// Info describes the index of a copy. It is zero where there is none.
type Info struct {
	Exists        bool
	Seq, PurgeSeq uint64          // of the copy, that the index reflects
	Live          uint64          // documents
	Dead          uint64          // earlier versions of documents that still take space
	Size          int64           // bytes on disk
	LeftOut       uint64          // documents that the index holds nothing of, because they cannot be indexed
	Left          []index.LeftOut // the first of them
}

// Info describes the index of a definition on a copy; none is made. One that turns out to be
// damaged is emptied, and built anew when it is next updated.
func (s *Indexes) Info(ctx context.Context, copyName, signature string, definition []byte) (info Info, err error) {
	name := index.Name{Type: index.Search, Signature: signature}
	if info.Exists, err = s.manager.Has(copyName, name); err != nil || !info.Exists {
		return info, err
	}
	spec := index.Spec{Name: name, Open: func(ctx context.Context) (index.Kind, bool, error) {
		return s.kind(ctx, copyName, signature, definition)
	}}
	for retried := false; ; retried = true {
		use, err := s.manager.Acquire(ctx, copyName, spec)
		if err != nil {
			return info, err
		}
		err = info.read(ctx, use)
		damaged := fault.Is(err, fault.Corruption)
		if damaged {
			use.Discard(err)
		}
		use.Release()
		if !damaged || retried {
			return info, err
		}
	}
}

// read fills in all but Exists.
func (i *Info) read(ctx context.Context, use *index.Use) error {
	snap, err := use.Index.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	r, err := postings.NewReader(snap, nil)
	if err != nil {
		return err
	}
	status, err := use.Status(ctx, snap)
	if err != nil {
		return err
	}
	i.Seq, i.PurgeSeq, i.Live, i.Dead = status.Seq, status.PurgeSeq, r.Live, max(r.Versions(), r.Live)-r.Live
	i.LeftOut, i.Left = status.LeftOut, status.Left
	i.Size, _, err = use.Index.Sizes()
	return err
}
