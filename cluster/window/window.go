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

// Hold counts the documents that were read, of the sizes that size tells, in place of those before
// them. It returns how many of the first ones there is space for: the caller gives up the others,
// because how many are read together was not the client's choice, and reads them again. The error
// says that there is no space for the first one alone.
func (w *Window) Hold(documents int, size func(i int) int) (held int, err error) {
	bytes := 0
	for i := range documents {
		bytes += size(i)
	}
	if documents > 0 {
		w.size = min(w.most, max(windowBytes/max(bytes/documents, 1), 1), 4*w.size)
	}
	w.held.Reduce(0)
	if held, err = Fit(&w.held, documents, size); held < documents {
		w.Shrink(documents)
	}
	return held, err
}

// Fit counts the first of some documents on s: all, or else half of them, and so on. It
// returns how many it has counted; the error says that there is no space for the first one.
func Fit(s *memory.Steps, documents int, size func(i int) int) (held int, err error) {
	bytes := 0
	for i := range documents {
		bytes += size(i)
	}
	for held = documents; ; {
		if err = s.Add(bytes); err == nil {
			return held, nil
		}
		if held <= 1 {
			return 0, err
		}
		for half := held / 2; held > half; held-- {
			bytes -= size(held - 1)
		}
	}
}

// Keep gives back all but so many bytes of the documents that were read last.
func (w *Window) Keep(bytes int) { w.held.Reduce(bytes) }

// Shrink makes the next window smaller than one of that many documents, for which there was no space.
func (w *Window) Shrink(documents int) { w.size = min(w.size, max(documents/4, 1)) }

// Close gives back what the last documents take.
func (w *Window) Close() { w.held.Reduce(0) }
