package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.uber.org/zap"

	"divan/cluster/repair"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// maxMending is how many documents are mended in the background at the
	// same time; what comes beyond that is left to the synchronisation of
	// copies.
	maxMending = 32
	// bringWindow is how many documents go from copy to copy in one message.
	bringWindow = 64
)

// mending is the documents that are being mended in the background, so that
// many reads of one document mend it once.
//
// LOCKS: mu guards the map only.
type mending struct {
	mu   sync.Mutex
	busy map[mendKey]struct{}
}

type mendKey struct{ db, id string }

// begin reports whether the caller is the one to mend a document.
func (m *mending) begin(k mendKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.busy[k]; taken || len(m.busy) >= maxMending {
		return false
	}
	if m.busy == nil {
		m.busy = make(map[mendKey]struct{})
	}
	m.busy[k] = struct{}{}
	return true
}

func (m *mending) end(k mendKey) {
	m.mu.Lock()
	delete(m.busy, k)
	m.mu.Unlock()
}

// mendLater brings copies in line about one document, in the background: a
// read has seen that they differ.
func (d *DB) mendLater(ctx context.Context, id string, copies []target) {
	key := mendKey{d.meta.Name, id}
	if !d.c.mending.begin(key) {
		return
	}
	ok := d.c.detach(ctx, func(ctx context.Context) {
		defer d.c.mending.end(key)
		if err := d.mend(ctx, id, copies); err != nil {
			d.c.log.Debug("document not mended", zap.String("db", d.meta.Name), zap.String("id", id), zap.Error(err))
		}
	})
	if !ok {
		d.c.mending.end(key)
	}
}

// mend brings copies in line about one document. What cannot be brought to a
// copy now is noted for repair.
func (d *DB) mend(ctx context.Context, id string, copies []target) error {
	var failure error
	for _, from := range copies {
		for _, to := range copies {
			if from == to {
				continue
			}
			if err := d.bring(ctx, from, to, []string{id}); err != nil {
				d.c.missed(to)
				failure = err
			}
		}
	}
	return failure
}

// bring gives a copy everything that another one has of some documents: purges
// in both directions first, or purged revisions would come back, then the
// leaves that it lacks, with their attachments.
func (d *DB) bring(ctx context.Context, from, to target, ids []string) error {
	src, dst := d.c.replica(from.node), d.c.replica(to.node)
	if src == nil {
		return errNodeDown(from.node)
	}
	if dst == nil {
		return errNodeDown(to.node)
	}
	b := bringing{db: d, from: from, to: to, src: src, dst: dst}
	if err := b.skipPassed(ctx); err != nil {
		return err
	}
	for window := range slices.Chunk(ids, bringWindow) {
		err := b.run(ctx, window)
		for n := 1; n < exchanges && fault.Is(err, fault.Conflict); n++ {
			err = b.run(ctx, window) // there were purges meanwhile
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bringing is one bring.
type bringing struct {
	db       *DB
	from, to target
	src, dst replica
	theirs   uint64 // up to here dst has done the purges of src's log
	ours     uint64 // up to here src has done those of dst's log
	seen     uint64 // the purges of dst that src has done as well
}

// skipPassed finds out which purges of either copy the other one is known to
// have done, so that only later ones are looked at. Those must not be: a copy
// that has dropped a purge from its log takes it for a new one, and would do it
// once more to what was written again since.
func (b *bringing) skipPassed(ctx context.Context) error {
	source, _, err := b.src.Position(ctx, b.from.name)
	if err != nil {
		return fmt.Errorf("identify a copy: %w", err)
	}
	target, _, err := b.dst.Position(ctx, b.to.name)
	if err != nil {
		return fmt.Errorf("identify a copy: %w", err)
	}
	b.theirs, err = repair.PassedPurges(ctx, b.src, b.from.name, repair.Follower{Log: b.from.node, Node: b.to.node, UUID: target})
	if err != nil {
		return fmt.Errorf("read the mark of purges: %w", err)
	}
	b.ours, err = repair.PassedPurges(ctx, b.dst, b.to.name, repair.Follower{Log: b.to.node, Node: b.from.node, UUID: source})
	if err != nil {
		return fmt.Errorf("read the mark of purges: %w", err)
	}
	return nil
}

// run brings everything of a few documents.
func (b *bringing) run(ctx context.Context, ids []string) error {
	if err := b.purges(ctx, ids); err != nil {
		return err
	}
	return b.leaves(ctx, ids)
}

// purges has either copy do the purges of these documents that only the other
// one has done, or of which the other one knows more. What a copy learns of a
// purge by doing it the other one has to learn as well, so this goes on until
// nothing is lacking.
func (b *bringing) purges(ctx context.Context, ids []string) error {
	theirs, ours := purgeTail{upto: b.theirs}, purgeTail{upto: b.ours}
	for range exchanges {
		if err := theirs.read(ctx, b.src, b.from.name); err != nil {
			return err
		}
		if err := ours.read(ctx, b.dst, b.to.name); err != nil {
			return err
		}
		b.seen = ours.upto
		in, out := lackingPurges(theirs.log, slices.Concat(ours.log, ours.told), ids), lackingPurges(ours.log, slices.Concat(theirs.log, theirs.told), ids)
		if len(in)+len(out) == 0 {
			break
		}
		if err := ours.tell(ctx, b.dst, b.to.name, in); err != nil {
			return err
		}
		if err := theirs.tell(ctx, b.src, b.from.name, out); err != nil {
			return err
		}
	}
	return nil
}

// exchanges is how often purges go to and fro; one copy or the other learns
// something new each time, so that they soon are done.
const exchanges = 8

// purgeTail is the newest part of a copy's log of purges.
type purgeTail struct {
	upto uint64            // the purge sequence of the last entry read
	log  []shard.PurgeInfo // what came after the purges that the other copy has passed
	told []shard.PurgeInfo // what the copy was asked to do; it may have known, from before
}

// read appends what has come since the last time.
func (t *purgeTail) read(ctx context.Context, rep replica, name string) error {
	more, err := rep.Purges(ctx, name, t.upto)
	if err != nil {
		return fmt.Errorf("read the log of purges: %w", err)
	}
	t.log = append(t.log, more...)
	if len(more) > 0 {
		t.upto = more[len(more)-1].Seq
	}
	return nil
}

// tell has the copy do purges of another one.
func (t *purgeTail) tell(ctx context.Context, rep replica, name string, items []shard.PurgeItem) error {
	if len(items) == 0 {
		return nil
	}
	if _, err := rep.Purge(ctx, name, items); err != nil {
		return fmt.Errorf("bring purges: %w", err)
	}
	for _, it := range items {
		t.told = append(t.told, shard.PurgeInfo{UUID: it.UUID, ID: it.ID, Paths: it.Paths})
	}
	return nil
}

// lackingPurges returns the purges of some documents that are in one log and
// not known to another copy, or of which it knows paths that the other does not.
func lackingPurges(log, known []shard.PurgeInfo, ids []string) []shard.PurgeItem {
	newest, others := make(map[[16]byte]*shard.PurgeInfo), make(map[[16]byte][]*shard.PurgeInfo)
	for i := range log {
		if slices.Contains(ids, log[i].ID) {
			newest[log[i].UUID] = &log[i]
		}
	}
	for i := range known {
		if newest[known[i].UUID] != nil {
			others[known[i].UUID] = append(others[known[i].UUID], &known[i])
		}
	}
	var items []shard.PurgeItem
	for i := range log {
		p := &log[i]
		if newest[p.UUID] != p {
			continue // of another document, or there is a later entry
		}
		if !slices.ContainsFunc(others[p.UUID], func(o *shard.PurgeInfo) bool { return tells(o.Paths, p.Paths) }) {
			items = append(items, shard.PurgeItem{UUID: p.UUID, ID: p.ID, Revs: p.Revs, Paths: p.Paths})
		}
	}
	return items
}

// tells reports whether some paths name every revision that others name.
func tells(paths, others []doc.Path) bool {
	known := make(map[doc.Rev]struct{})
	each := func(paths []doc.Path, fn func(r doc.Rev)) {
		for _, p := range paths {
			for k, id := range p.IDs {
				fn(doc.Rev{Pos: p.Start - uint64(k), ID: id})
			}
		}
	}
	each(paths, func(r doc.Rev) { known[r] = struct{}{} })
	all := true
	each(others, func(r doc.Rev) { _, ok := known[r]; all = all && ok })
	return all
}

// leaves brings the leaves of some documents that the copy lacks.
func (b *bringing) leaves(ctx context.Context, ids []string) error {
	heads, err := b.open(ctx, len(ids), func(i int) shard.OpenRevsRequest {
		return shard.OpenRevsRequest{Copy: b.from.name, ID: ids[i], All: true, HeadOnly: true}
	})
	if err != nil {
		return err
	}
	var known []shard.IDRevs
	for i := range heads {
		if len(heads[i]) == 0 {
			continue
		}
		k := shard.IDRevs{ID: ids[i]}
		for _, r := range heads[i] {
			k.Revs = append(k.Revs, r.Rev)
		}
		known = append(known, k)
	}
	if len(known) == 0 {
		return nil
	}
	lacking, err := b.dst.Missing(ctx, b.to.name, known)
	if err != nil {
		return fmt.Errorf("ask what is missing: %w", err)
	}
	lacking = slices.DeleteFunc(lacking, func(m shard.IDMissing) bool { return len(m.Missing) == 0 })
	if len(lacking) == 0 {
		return nil
	}
	full, err := b.open(ctx, len(lacking), func(i int) shard.OpenRevsRequest {
		return shard.OpenRevsRequest{Copy: b.from.name, ID: lacking[i].ID, Revs: lacking[i].Missing, WithPath: true}
	})
	if err != nil {
		return err
	}
	return b.write(ctx, slices.Concat(full...))
}

// open reads revisions at the source.
func (b *bringing) open(ctx context.Context, n int, req func(i int) shard.OpenRevsRequest) ([][]shard.RevResult, error) {
	reqs := make([]shard.OpenRevsRequest, n)
	for i := range reqs {
		reqs[i] = req(i)
	}
	out, errs, err := b.src.OpenRevsMany(ctx, reqs)
	if err == nil {
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, fmt.Errorf("read what a copy lacks: %w", err)
	}
	return out, nil
}

// write merges revisions into the copy.
func (b *bringing) write(ctx context.Context, revs []shard.RevResult) error {
	var edits []shard.Edit
	for _, r := range revs {
		if r.Doc == nil {
			continue // gone meanwhile
		}
		e := shard.Edit{ID: r.Doc.ID, Path: r.Doc.Revisions, Deleted: r.Doc.Deleted, Body: r.Doc.Body}
		for _, a := range r.Doc.Atts {
			att, err := b.content(ctx, r.Doc.ID, a)
			if err != nil {
				return err
			}
			e.Atts = append(e.Atts, att)
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return nil
	}
	results, err := b.dst.Update(ctx, shard.UpdateRequest{
		Copy: b.to.name, Edits: edits, Limits: b.db.limits(), DB: b.db.meta.Name, Trusted: true, NoPath: true, PurgesSeen: &b.seen,
	})
	for i := range results {
		if err == nil {
			err = results[i].Err
		}
	}
	if err != nil {
		return fmt.Errorf("write what a copy lacks: %w", err)
	}
	return nil
}

// content makes sure that the copy has the content of an attachment, under the
// same key, and returns what an edit says about it.
func (b *bringing) content(ctx context.Context, id string, a doc.Attachment) (shard.EditAttachment, error) {
	att := shard.EditAttachment{Attachment: a, HasRevPos: true}
	if a.StoredLength == 0 {
		att.Data = []byte{}
		return att, nil
	}
	r, err := b.src.ReadAttachment(ctx, shard.AttachmentRange{Copy: b.from.name, ID: id, Key: a.Key, Length: -1})
	if err != nil {
		return att, fmt.Errorf("read an attachment: %w", err)
	}
	defer func() { _ = r.Close() }() // read only: nothing to lose
	if a.StoredLength <= InlineAttachment {
		if att.Data, err = io.ReadAll(r); err != nil {
			return att, fmt.Errorf("read an attachment: %w", err)
		}
		return att, nil
	}
	there, err := b.dst.ReadAttachment(ctx, shard.AttachmentRange{Copy: b.to.name, ID: id, Key: a.Key})
	if err == nil {
		return att, there.Close()
	}
	if !fault.Is(err, fault.NotFound) {
		return att, fmt.Errorf("look for an attachment: %w", err)
	}
	sink, err := b.dst.PutAttachment(ctx, b.to.name, id, a.Key)
	if err != nil {
		return att, fmt.Errorf("bring an attachment: %w", err)
	}
	if _, err = io.CopyBuffer(sink, r, make([]byte, uploadBlock)); err == nil {
		err = sink.Close()
	}
	if err != nil {
		sink.Abort()
		return att, fmt.Errorf("bring an attachment: %w", err)
	}
	return att, nil
}
