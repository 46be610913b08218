package shard

import (
	"context"
	"fmt"

	"divan/storage"
)

// DocScan walks over the live documents of a copy in the order of their ids, all
// of one moment, and gives out their stored bytes: nothing is copied or allocated
// per document. It is used by one goroutine and holds its moment until it is
// closed.
//
//	for ok := s.Seek(from); ok; ok = s.Next() { … }
type DocScan struct {
	Seq uint64 // of the moment

	name string
	snap *storage.Snapshot
	it   *storage.Docs
	doc  Doc // of Doc, used again
}

// ScanDocs opens a scan; close it.
func (l *Local) ScanDocs(ctx context.Context, name string, desc bool) (*DocScan, error) {
	snap, _, err := l.states.snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	it, err := snap.Docs(storage.Range{Desc: desc})
	if err != nil {
		_ = snap.Close()
		return nil, fmt.Errorf("scan %s: %w", name, err)
	}
	return &DocScan{Seq: snap.Seq(), name: name, snap: snap, it: it}, nil
}

// First moves to the first document in the direction.
func (s *DocScan) First() bool { return s.live(s.it.First()) }

// Seek moves to the document with an id, or to the next one in the direction.
func (s *DocScan) Seek(id string) bool { return s.live(s.it.Seek(id)) }

// Next moves on.
func (s *DocScan) Next() bool { return s.live(s.it.NextLive()) }

func (s *DocScan) live(ok bool) bool {
	for ok && s.it.Head().Deleted {
		ok = s.it.NextLive()
	}
	return ok
}

// ID returns the id of the document; it is valid until the scan moves.
func (s *DocScan) ID() []byte { return s.it.ID() }

// Body returns the body of the document, canonical JSON without underscore
// members; it is valid until the scan moves.
func (s *DocScan) Body() ([]byte, error) {
	h := s.it.Head()
	s.doc = Doc{Rev: h.Winner}
	if h.Inline == nil {
		s.doc.ID = string(s.ID())
	}
	err := readContent(s.snap, &s.doc, h.Inline)
	return s.doc.Body, err
}

// Doc returns the whole document, after Body; it is valid until the scan moves.
func (s *DocScan) Doc(conflicts bool) (*Doc, error) {
	s.doc.ID = string(s.ID())
	if !conflicts {
		return &s.doc, nil
	}
	var err error
	if s.doc.Conflicts, _, err = losersAt(s.it); err != nil {
		return nil, fmt.Errorf("scan %s: %w", s.name, err)
	}
	return &s.doc, nil
}

// Err returns what ended the scan early, nil at its end.
func (s *DocScan) Err() error {
	if err := s.it.Err(); err != nil {
		return fmt.Errorf("scan %s: %w", s.name, err)
	}
	return nil
}

// Close releases the moment. It may be called more than once.
func (s *DocScan) Close() {
	if s.it != nil {
		_ = s.it.Close() // read only: nothing to lose
		_ = s.snap.Close()
		s.it = nil
	}
}
