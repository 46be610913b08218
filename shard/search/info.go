package search

import (
	"context"

	"divan/shard/index"
	"divan/shard/search/postings"
)

// Info describes the index of a copy. It is zero where there is none.
type Info struct {
	Exists        bool
	Seq, PurgeSeq uint64 // of the copy, that the index reflects
	Live          uint64 // documents
	Dead          uint64 // earlier versions of documents that still take room
	Size          int64  // bytes on disk
}

// Info describes the index of a definition on a copy; none is made.
func (s *Indexes) Info(ctx context.Context, copyName, signature string, definition []byte) (info Info, err error) {
	name := index.Name{Type: index.Search, Signature: signature}
	if info.Exists, err = s.manager.Has(copyName, name); err != nil || !info.Exists {
		return info, err
	}
	use, err := s.manager.Acquire(ctx, copyName, index.Spec{Name: name, Open: func(ctx context.Context) (index.Kind, bool, error) {
		return s.kind(ctx, copyName, signature, definition)
	}})
	if err != nil {
		return info, err
	}
	defer use.Release()
	snap, err := use.Index.Snapshot()
	if err != nil {
		return info, err
	}
	defer snap.Close()
	r, err := postings.NewReader(snap)
	if err != nil {
		return info, err
	}
	status, err := use.Status(ctx, snap)
	if err != nil {
		return info, err
	}
	info.Seq, info.PurgeSeq, info.Live, info.Dead = status.Seq, status.PurgeSeq, r.Live, max(r.Versions(), r.Live)-r.Live
	info.Size, _, err = use.Index.Sizes()
	return info, err
}
