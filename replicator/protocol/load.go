package protocol

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// maxWriteBytes is how much of documents is written at once.
const maxWriteBytes = 1 << 20

// load is revisions on their way from the source to the target. It belongs to
// one goroutine.
type load struct {
	*run
	wanted []endpoint.Wanted
	whole  bool // attachments are no stubs

	left   []endpoint.Wanted // what has not come; Revs shared with wanted, never changed in place
	cursor int               // place in left of what is expected next
	places map[string]int    // in left; made when the source keeps another order
	came   int               // since the figures were updated

	docs  []*endpoint.Doc // to be written
	bytes int             // of them
	hold  memory.Hold     // the same
	bare  []endpoint.Wanted
}

func newLoad(r *run, wanted []endpoint.Wanted) *load {
	return &load{run: r, wanted: wanted, left: slices.Clone(wanted), hold: r.Memory.Hold()}
}

// move copies what is wanted.
func (l *load) move(ctx context.Context) error {
	defer l.hold.Release()
	options := endpoint.FetchOptions{NoBulkGet: !l.Spec.UseBulkGet, WholeAttachments: l.whole, Refused: l.passOver}
	err := l.Source.Fetch(ctx, options, l.wanted, func(d *endpoint.Doc, contents endpoint.Contents) error {
		return l.take(ctx, d, contents)
	})
	if err == nil {
		err = l.flush(ctx)
	}
	asked := revisions(l.wanted)
	came := asked - revisions(l.left)
	l.Progress.update(func(s *Stats) {
		s.DocsRead += int64(l.came)
		if l.Spec.UseBulkGet {
			s.BulkGetAttempts += int64(asked)
			s.BulkGetDocs += int64(came)
		}
	})
	if err != nil {
		return fmt.Errorf("copy documents: %w", err)
	}
	return nil
}

// take copies a revision. One that fails may come again.
func (l *load) take(ctx context.Context, d *endpoint.Doc, contents endpoint.Contents) error {
	if err := l.put(ctx, d, contents); err != nil {
		return err
	}
	l.came++
	l.arrived(d)
	return nil
}

// put writes a revision whose attachments follow, and gathers others.
func (l *load) put(ctx context.Context, d *endpoint.Doc, contents endpoint.Contents) error {
	if d.Follows() {
		if err := l.Target.WriteWith(ctx, d, contents); err != nil {
			return l.refused(d.ID, d.Path.Rev(), err)
		}
		l.written(1, 0)
		return nil
	}
	size := d.Size()
	limit := int(l.run.bytes.Load())
	if len(l.docs) > 0 && l.bytes+size > limit {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	if err := l.hold.Take(ctx, endpoint.MemoryFactor*int64(size)); err != nil {
		return endpoint.NoMemory("documents of the "+l.source.name, err)
	}
	l.docs = append(l.docs, d)
	l.bytes += size
	return nil
}

// arrived strikes out what the source has shown: the revision that has come,
// or one that it descends from.
func (l *load) arrived(d *endpoint.Doc) {
	l.strike(d.ID, func(r doc.Rev) bool { return holds(&d.Path, r) })
}

// passOver counts a revision that no target would take.
func (l *load) passOver(id string, rev doc.Rev, err error) error {
	if err := l.refused(id, rev, err); err != nil {
		return err
	}
	l.strike(id, func(r doc.Rev) bool { return r == rev })
	return nil
}

// strike takes revisions of a document out of what is left.
func (l *load) strike(id string, done func(doc.Rev) bool) {
	i, ok := l.place(id)
	if !ok {
		return
	}
	w := &l.left[i]
	if len(w.Revs) == 1 && done(w.Revs[0]) {
		w.Revs = nil
		return
	}
	w.Revs = slices.DeleteFunc(slices.Clone(w.Revs), done)
}

// holds reports whether a path leads through a revision.
func holds(p *doc.Path, r doc.Rev) bool {
	i := p.Start - r.Pos // wraps around for a later one
	return i < uint64(len(p.IDs)) && p.IDs[i] == r.ID
}

// place finds a document in left. Sources mostly keep the order that they were
// asked in.
func (l *load) place(id string) (int, bool) {
	for range 2 {
		if l.cursor < len(l.left) && l.left[l.cursor].ID == id {
			return l.cursor, true
		}
		l.cursor++
	}
	if l.places == nil {
		l.places = make(map[string]int, len(l.left))
		for i := range l.left {
			l.places[l.left[i].ID] = i
		}
	}
	i, ok := l.places[id]
	l.cursor = i
	return i, ok
}

// late returns what the source has not shown.
func (l *load) late() []endpoint.Wanted {
	return slices.DeleteFunc(l.left, func(w endpoint.Wanted) bool { return len(w.Revs) == 0 })
}

// flush writes what was gathered.
func (l *load) flush(ctx context.Context) error {
	docs, came := l.docs, l.came
	if len(docs) == 0 {
		return nil
	}
	l.Progress.update(func(s *Stats) { s.DocsRead += int64(came) })
	l.docs, l.bytes, l.came = docs[:0], 0, 0
	err := l.write(ctx, docs)
	clear(docs)
	l.hold.Release()
	return err
}

// write stores documents. Requests get smaller when the target takes no such
// amount at once, and larger again, slowly: it may have been one document.
func (l *load) write(ctx context.Context, docs []*endpoint.Doc) error {
	size := l.run.bytes.Load()
	whole, err := l.writePart(ctx, docs)
	if whole {
		l.run.bytes.Store(min(size+size/8+1, maxWriteBytes))
	} else {
		l.run.bytes.Store(max(1, size/2))
	}
	return err
}

// writePart stores documents, in halves if the target takes no more at once;
// whole says that it did. A single one that it does not take is given up.
func (l *load) writePart(ctx context.Context, docs []*endpoint.Doc) (whole bool, err error) {
	refused, err := l.Target.Write(ctx, docs)
	if half := len(docs) / 2; half > 0 && fault.Is(err, fault.RequestTooLarge) {
		if _, err := l.writePart(ctx, docs[:half]); err != nil {
			return false, err
		}
		_, err = l.writePart(ctx, docs[half:])
		return false, err
	}
	if fault.Is(err, fault.RequestTooLarge) {
		return true, l.refused(docs[0].ID, docs[0].Path.Rev(), err)
	}
	if err != nil {
		return true, err
	}
	l.written(len(docs)-len(refused), 0)
	for _, r := range refused {
		if err := l.refused(r.ID, r.Rev, r.Err); err != nil {
			return true, err
		}
	}
	return true, nil
}

// refused decides what becomes of a revision that the target did not take: it
// comes again with its attachments, or is given up and counted, or is worth
// another run.
func (l *load) refused(id string, rev doc.Rev, err error) error {
	switch {
	case fault.Is(err, fault.MissingStub) && !l.whole:
		l.bare = append(l.bare, endpoint.Wanted{ID: id, Revs: []doc.Rev{rev}})
	case fault.RepeatOf(err) == fault.Lasting:
		l.log.Warn("the target does not take a document", zap.String("document", id), zap.Stringer("revision", rev), zap.Error(err))
		l.written(0, 1)
	default:
		return fmt.Errorf("write revision %s of document %q: %w", rev, id, err)
	}
	return nil
}

func (l *load) written(docs, failures int) {
	l.Progress.update(func(s *Stats) {
		s.DocsWritten += int64(docs)
		s.DocWriteFailures += int64(failures)
	})
}
