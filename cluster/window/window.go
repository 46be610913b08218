// Package window says how many documents are read at a time.
package window

import "divan/storage/memory"

const (
	windowFirst = 16      // documents of the first window, whose size is unknown
	windowBytes = 4 << 20 // of documents that a window is to have, going by the one before

	// MaxBytes bounds, about, the bytes of the documents of one window. Copies leave out those
	// beyond it, but for the first; the caller asks for them again.
	MaxBytes = 2 * windowBytes
)

// Window says how many documents are read at a time when a request names them:
// those of one window are asked for in one message to each node, and held until
// they are written. It begins small and goes by the size of what was read.
type Window struct {
	size, most int
	held       memory.Steps // of the documents that were read last
}

// New returns a window of up to most documents. They are counted on h, which may be nil.
func New(most int, h memory.Holder) Window {
	return Window{held: memory.InSteps(h), size: min(windowFirst, most), most: most}
}

// Size returns how many documents are read next, at least one.
func (w *Window) Size() int { return w.size }

// Read tells what was read: so many documents, with so many bytes together. They are held until the next Read. When there is no room
// for several documents the next window is smaller, because their number was not
// the client's choice; the error refuses a document that has none alone.
func (w *Window) Read(documents, bytes int) error {
	if documents > 0 {
		w.size = min(w.most, max(windowBytes/max(bytes/documents, 1), 1), 4*w.size)
	}
	w.held.Reduce(0)
	err := w.held.Add(bytes)
	if err != nil && documents > 1 {
		w.Shrink(documents)
		return nil
	}
	return err
}

// Keep gives back all but so many bytes of the documents that were read last.
func (w *Window) Keep(bytes int) { w.held.Reduce(bytes) }

// Shrink makes the next window smaller than one of that many documents, for which there was no room.
func (w *Window) Shrink(documents int) { w.size = min(w.size, max(documents/4, 1)) }

// Close gives back what the last documents take.
func (w *Window) Close() { w.held.Reduce(0) }
