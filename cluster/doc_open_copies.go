package cluster

import (
	"context"
	"sync"

	"divan/cluster/quorum"
	"divan/shard"
)

// opened is what one copy answered.
type opened struct {
	at  int
	doc *shard.Doc
	err error
}

// openAny asks one copy after the other for a named revision, which is the
// same wherever it is, until one has it.
func (d *DB) openAny(ctx context.Context, s *stretch, req shard.OpenRequest) (*shard.Doc, error) {
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	var failure error
	for i, t := range s.copies {
		a := d.openOne(ctx, t, i, req)
		if a.err == nil {
			return a.doc, nil
		}
		if failure == nil || quorum.Usable(a.err) {
			failure = a.err
		}
	}
	return nil, d.explain(failure)
}

// openCopies asks several copies for the winner of a document; r of them must
// say the same.
//
// Result selection: quorum.Read. Cleanup and contexts: all copies are asked at
// once; when the verdict is known the others' context ends and they are waited
// for.
func (d *DB) openCopies(ctx context.Context, s *stretch, r int, req shard.OpenRequest) (*shard.Doc, error) {
	wantPath := req.Revs
	req.Revs = true // for the ancestry
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	ctx, stop := context.WithCancel(ctx)
	inbox := make(chan opened, len(s.copies))
	answers := make([]*shard.Doc, len(s.copies))
	q := quorum.NewRead(len(s.copies), r)
	var asking sync.WaitGroup
	for i := range s.copies {
		asking.Go(func() { inbox <- d.openOne(ctx, s.copies[i], i, req) })
	}
	defer func() {
		stop()
		asking.Wait()
	}()
	for range s.copies {
		a := <-inbox
		if a.err != nil {
			q.Refused(a.err)
		} else {
			answers[a.at] = a.doc
			q.Found(a.at, quorum.Answer{Path: a.doc.Revisions, Deleted: a.doc.Deleted})
		}
		verdict, from, err := q.Verdict()
		switch verdict {
		case quorum.Asking:
			continue
		case quorum.Absent, quorum.Unread:
			return nil, d.explain(err)
		case quorum.Agreed, quorum.Newest, quorum.Diverged:
		}
		got := answers[from]
		if !wantPath {
			got.Revisions.Start, got.Revisions.IDs = 0, nil
		}
		return got, nil
	}
	return nil, errNoCopy()
}

func (d *DB) openOne(ctx context.Context, t target, at int, req shard.OpenRequest) opened {
	rep := d.c.replica(t.node)
	if rep == nil {
		return opened{at: at, err: errNodeDown(t.node)}
	}
	req.Copy = t.name
	got, err := rep.Open(ctx, req)
	if isNoCopy(err) {
		err = errNodeDown(t.node) // says nothing about the document
	}
	return opened{at: at, doc: got, err: err}
}
