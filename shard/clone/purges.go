package clone

import (
	"context"
	"errors"

	"divan/storage"
)

// readPurges makes the steps of what the source has purged since.
func (r *run) readPurges() error {
	have, want := r.Target.Counters(), r.Source.Counters()
	since := have.PurgeSeq
	if want.PurgeTrimmed > since {
		// The log no longer tells what was purged in between.
		if err := r.readGone(); err != nil {
			return err
		}
		since = want.PurgeTrimmed
		r.step.purgeSeq, r.step.trimmed = since, since
	}
	if want.PurgeSeq == since {
		return nil
	}
	it, err := r.Source.Purges(since)
	if err != nil {
		return err
	}
	return errors.Join(r.copyPurges(it), it.Err(), it.Close())
}

func (r *run) copyPurges(it *storage.Purges) error {
	seen := map[string]struct{}{}
	for ok := it.First(); ok; ok = it.Next() {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		p := it.Purge()
		r.step.purgeSeq = p.Seq
		if !r.Belongs(p.ID) {
			continue
		}
		if _, again := seen[p.ID]; !r.empty && !again {
			seen[p.ID] = struct{}{}
			if err := r.eraseGone(p.ID); err != nil {
				return err
			}
		}
		r.step.purges = append(r.step.purges, p)
		r.step.bytes += purgeBytes(&p)
		if r.step.full() {
			clear(seen)
			if err := r.emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// purgeBytes is about how many bytes an entry of the purge log has.
func purgeBytes(p *storage.Purge) int {
	n := len(p.ID) + 32*len(p.Revs) + 64
	for i := range p.Paths {
		n += 32 * len(p.Paths[i].IDs)
	}
	return n
}

// eraseGone takes a document out of the target that the source does not have.
func (r *run) eraseGone(id string) error {
	return r.Source.Fronts([]string{id}, func(_ int, front []byte) error {
		if front == nil {
			r.erase(id)
		}
		return nil
	})
}

func (r *run) erase(id string) {
	r.step.erased = append(r.step.erased, id)
	r.step.bytes += len(id)
}

// readGone takes all documents out of the target that the source does not have.
func (r *run) readGone() error {
	if r.empty {
		return nil
	}
	target, err := r.Target.Snapshot()
	if err != nil {
		return err
	}
	have, err := target.Heads(storage.Range{})
	if err != nil {
		return errors.Join(err, target.Close())
	}
	want, err := r.Source.Heads(storage.Range{})
	if err != nil {
		return errors.Join(err, have.Close(), target.Close())
	}
	err = r.compare(have, want)
	return errors.Join(err, have.Err(), want.Err(), have.Close(), want.Close(), target.Close())
}

// compare walks over the documents of both, in the order of ids.
func (r *run) compare(have, want *storage.Docs) error {
	more := want.First()
	for ok := have.First(); ok; ok = have.Next() {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		id := string(have.ID())
		for more && string(want.ID()) < id {
			more = want.Next()
		}
		if !more && want.Err() != nil {
			return want.Err()
		}
		if more && string(want.ID()) == id {
			continue
		}
		r.erase(id)
		if r.step.full() {
			if err := r.emit(); err != nil {
				return err
			}
		}
	}
	return nil
}
