// Package window says how many documents are read at a time.
package window

const (
	windowFirst = 16        // documents of the first window, whose size nobody knows
	windowBytes = 4 << 20   // of documents that a window is to have, going by the one before
	maxHeld     = 250 << 20 // of documents that a window has at most, whatever the one before was like
)

// Window says how many documents are read at a time when a request names them:
// those of one window are asked for in one message to each node, and held until
// they are written. It begins small and goes by the size of what was read.
type Window struct{ size, most int }

// New returns a window of up to most documents where documents have up to
// maxDocument bytes. Small documents say nothing about those behind them: as
// many of the largest ones have to fit into maxHeld, which also is a little
// below what one message between nodes can hold. That is 32 by default. A limit
// that leaves no room for the first window is the administrator's word that
// there is memory. (What a document has beside its winner, when several leaves
// are asked for, comes on top.)
func New(maxDocument int64, most int) Window {
	return Window{
		size: min(windowFirst, most),
		most: int(min(max(maxHeld/max(maxDocument, 1), windowFirst), int64(most))),
	}
}

// Size returns how many documents are read next, at least one.
func (w *Window) Size() int { return w.size }

// Read tells what was read: that many documents were asked for, and had that
// many bytes together.
func (w *Window) Read(documents, bytes int) {
	if documents > 0 {
		w.size = min(w.most, max(windowBytes/max(bytes/documents, 1), 1))
	}
}
