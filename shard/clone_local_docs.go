package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/storage"
)

// LocalDocs brings the local documents of clients in a range of the ring from the
// source to the target, with their revisions, and removes those that the source does
// not have. The server's own local documents (LocalDocsRequest.System) are not
// brought. Meanwhile the target may take local documents itself: each edit is sent
// to the source first. Edits that come in between are safe: a deletion is not
// undone, and no content is replaced by an older one.
func (c *Clones) LocalDocs(ctx context.Context, o CloneOptions) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	run := localsClone{states: c.states, ctx: ctx, o: &o}
	if run.source, err = c.states.pin(ctx, o.Source); err != nil {
		return err
	}
	defer c.states.engine.Release(run.source)
	if run.target, err = c.states.pin(ctx, o.Target); err != nil {
		return err
	}
	defer c.states.engine.Release(run.target)
	// Those of the target first: most are in both, and one that is in neither any
	// more needs no look.
	for _, store := range []*storage.Store{run.target, run.source} {
		err := run.walk(store)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			return fmt.Errorf("clone local documents of %s to %s: %w", o.Source, o.Target, err)
		}
	}
	return c.states.waitUnsequenced(ctx, o.Target)
}

// localsClone is one Clones.LocalDocs.
type localsClone struct {
	states         *copyStates
	ctx            context.Context // of the Clones.LocalDocs
	o              *CloneOptions
	source, target *storage.Store
}

// localsPage is how many local documents are listed at once, so that no moment of a
// store is held while documents are written.
const localsPage = 256

// walk clones every local document that a store has.
func (c *localsClone) walk(store *storage.Store) error {
	for next := localPrefix; ; {
		ids, err := c.page(store, next)
		if err != nil {
			return err
		}
		last := len(ids) < localsPage
		if !last {
			next = ids[len(ids)-1] + "\x00"
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return isSystem([]byte(id)) || !c.o.belongs(id) })
		for len(ids) > 0 {
			if ids, err = c.clone(ids); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

func (c *localsClone) page(store *storage.Store, from string) (ids []string, err error) {
	snap, err := store.Snapshot()
	if err != nil {
		return nil, err
	}
	it, err := snap.Locals(storage.Range{Lo: from})
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	for ok := it.First(); ok && len(ids) < localsPage; ok = it.Next() {
		ids = append(ids, string(it.ID()))
	}
	return ids, errors.Join(it.Err(), it.Close(), snap.Close())
}

// localSwap is a local document of the target that is to be what the source has.
type localSwap struct {
	id         string
	have, want []byte // nil: none
	done       bool
}

// clone makes documents of the target what they are in the source, as many as fit into
// a batch. It returns what is left to do.
func (c *localsClone) clone(ids []string) (left []string, err error) {
	if err := context.Cause(c.ctx); err != nil {
		return nil, err
	}
	swaps, left, err := c.differing(ids)
	if err != nil || len(swaps) == 0 {
		return left, err
	}
	again, err := c.exchange(swaps)
	return append(left, again...), err
}

// exchange swaps documents and looks again whether the source has changed since it
// was read. It returns the documents that have to be compared again.
//
// An edit reaches the source before the target. So when the source is the same after
// the swap, an edit that the swap has overwritten was in the source before that was
// read, and the source's content is no older. When it is another, the next round
// brings it; when the target was no longer as it was read, an edit has come there,
// and the next round compares again.
func (c *localsClone) exchange(swaps []localSwap) (left []string, err error) {
	fill := func(b *storage.Batch) error { return c.swap(b, swaps) }
	if err := c.states.submit(c.ctx, c.target, &exclusive{edits: true, fn: fill}, false); err != nil {
		return nil, err
	}
	for i := range swaps {
		s := &swaps[i]
		again, err := c.readSource(s.id)
		if err != nil {
			return nil, err
		}
		if !s.done || !same(again, s.want) {
			left = append(left, s.id)
		}
	}
	return left, nil
}

// same compares two texts of a local document; nil is none.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// differing compares documents, until those that are not the same fill a batch.
func (c *localsClone) differing(ids []string) (swaps []localSwap, left []string, err error) {
	bytes := 0
	for i, id := range ids {
		s := localSwap{id: id}
		// The target first: what comes there after this was in the source before.
		if s.have, err = readLocal(c.target.Reader(), id); err != nil {
			return nil, nil, err
		}
		if s.want, err = c.readSource(id); err != nil {
			return nil, nil, err
		}
		if same(s.have, s.want) {
			continue
		}
		swaps = append(swaps, s)
		if bytes += len(s.have) + len(s.want); bytes >= maxGroupBytes {
			return swaps, slices.Clone(ids[i+1:]), nil
		}
	}
	return swaps, nil, nil
}

// swap runs in the target's writer.
func (c *localsClone) swap(b *storage.Batch, swaps []localSwap) error {
	for i := range swaps {
		s := &swaps[i]
		now, err := readLocal(c.target.Reader(), s.id)
		if err != nil {
			return err
		}
		if s.done = same(now, s.have); !s.done {
			continue
		}
		if s.want == nil {
			b.DeleteLocal(s.id)
		} else {
			b.PutLocal(s.id, s.want)
		}
	}
	return nil
}

// readSource reads a document of the source, durable.
func (c *localsClone) readSource(id string) ([]byte, error) {
	text, err := readLocal(c.source.Reader(), id)
	if err != nil {
		return nil, err
	}
	return text, c.states.waitUnsequenced(c.ctx, c.o.Source)
}

// readLocal reads the text of a local document; nil when there is none.
func readLocal(r *storage.Reader, id string) ([]byte, error) {
	text, ok, err := r.Local(id)
	if err != nil || !ok {
		return nil, err
	}
	return text, nil
}
