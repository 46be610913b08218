package clone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// window are changes whose records are read together: in the order of ids that
// takes half of what reading them in the order of sequences does.
type window struct {
	seqs    []uint64
	docs    []storage.StoredDoc // Change and Record are in memory
	bytes   int
	chunk   []byte
	looked  uint64 // the sequence up to which there is nothing else
	entries uint64 // changes looked at
}

const (
	windowDocs = 1024
	// windowSteps is how many steps the records of a window may fill; the others are
	// read one by one.
	windowSteps = 4
)

// readChanges makes the steps of what has changed in the source since.
func (r *run) readChanges() error {
	total, err := r.Source.CountChanges(r.from)
	if err != nil {
		return err
	}
	it, err := r.Source.Changes(storage.SeqRange{After: r.from})
	if err != nil {
		return err
	}
	var w window
	for ok := it.First(); ok && err == nil; {
		ok = r.collect(&w, it)
		if err = it.Err(); err == nil {
			err = r.copyWindow(&w)
		}
		r.Progress(w.entries, total)
	}
	return errors.Join(err, it.Err(), it.Close())
}

// collect fills a window; false: the changes are at their end.
func (r *run) collect(w *window, it *storage.Changes) bool {
	clear(w.docs)
	w.docs, w.seqs, w.chunk, w.bytes = w.docs[:0], w.seqs[:0], w.chunk[:0], 0
	for n := 0; n < 16*windowDocs && len(w.docs) < windowDocs; n++ {
		c := it.Change()
		w.looked = c.Seq
		w.entries++
		if id := string(c.ID); r.Belongs(id) {
			w.seqs = append(w.seqs, c.Seq)
			w.docs = append(w.docs, storage.StoredDoc{ID: id, Change: w.keep(it.Text())})
		}
		if !it.Next() {
			return false
		}
	}
	return true
}

// keep returns a copy of bytes that lives as long as the window.
func (w *window) keep(b []byte) []byte {
	w.bytes += len(b)
	if len(b) > cap(w.chunk)-len(w.chunk) {
		w.chunk = make([]byte, 0, max(len(b), stepBytes+stepBytes/2))
	}
	at := len(w.chunk)
	w.chunk = append(w.chunk, b...)
	return w.chunk[at:len(w.chunk):len(w.chunk)]
}

// copyWindow adds the documents of a window to steps.
func (r *run) copyWindow(w *window) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	order := make([]int, len(w.docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(w.docs[x].ID, w.docs[y].ID) })
	ids := make([]string, len(order))
	for k, i := range order {
		ids[k] = w.docs[i].ID
	}
	err := r.Source.RecordTexts(ids, func(k int, record []byte) error {
		if w.bytes < windowSteps*r.StepBytes {
			w.docs[order[k]].Record = w.keep(record)
		}
		return nil
	})
	for i := range w.docs {
		if err == nil {
			err = r.copyDoc(&w.docs[i], w.seqs[i])
		}
		w.docs[i] = storage.StoredDoc{}
	}
	r.step.seq = max(r.step.seq, w.looked)
	return err
}

// copyDoc adds a document to the step, which is handed on when it is full.
func (r *run) copyDoc(d *storage.StoredDoc, seq uint64) error {
	if d.Record == nil {
		err := r.Source.RecordTexts([]string{d.ID}, func(_ int, record []byte) error {
			d.Record = slices.Clone(record)
			return nil
		})
		if err != nil {
			return err
		}
	}
	var h doc.Head
	if err := doc.DecodeHead(d.Record, &h); err != nil {
		return fmt.Errorf("document %q: %w", d.ID, err)
	}
	if h.Seq != seq {
		return fault.Newf(fault.Corruption, "The entry of sequence %d is not that of its document.", seq)
	}
	d.Change, d.Record = r.step.keep(d.Change), r.step.keep(d.Record)
	var atts []doc.Attachment
	var err error
	if h.Inline != nil {
		if atts, err = attachments(atts, h.Inline); err != nil {
			return fmt.Errorf("document %q: %w", d.ID, err)
		}
	}
	if doc.StoredOutside(d.Record) {
		err = r.Source.Bodies(d.ID, func(rev doc.Rev, text []byte) error {
			d.Bodies = append(d.Bodies, storage.StoredRevision{Rev: rev, Text: r.step.keep(text)})
			var err error
			atts, err = attachments(atts, text)
			return err
		})
	}
	if err == nil && len(atts) > 0 {
		err = r.copyContents(d, atts)
	}
	if err != nil {
		return fmt.Errorf("document %q: %w", d.ID, err)
	}
	if r.step.addDoc(*d, seq); r.step.full() {
		return r.emit()
	}
	return nil
}
