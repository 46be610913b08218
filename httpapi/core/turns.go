package core

import (
	"io"
	"runtime"
)

// turns lets large bodies be worked on a few at a time. Each of them keeps a
// processor busy for tens of milliseconds without a pause, and whatever is small
// would wait behind all of them.
type turns chan struct{}

// largeBody is how many bytes a body has at least that waits for its turn.
const largeBody = 1 << 20

// newTurns leaves a processor to small requests where there are two.
func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)-1)) }

// InTurn does work on a body of so many bytes, which does not wait for anything.
func (c *Call) InTurn(size int, work func()) {
	if size >= largeBody {
		c.API.turns <- struct{}{}
		defer func() { <-c.API.turns }()
	}
	work()
}

// yieldingReader gives way to others now and then: what it reads comes out of
// memory, so that nothing else would make it pause.
type yieldingReader struct {
	r io.Reader
	n int // bytes since it gave way
}

// yieldAfter is some tenths of a millisecond of inflating.
const yieldAfter = 64 << 10

// Read implements io.Reader.
func (y *yieldingReader) Read(buf []byte) (int, error) {
	n, err := y.r.Read(buf)
	if y.n += n; y.n >= yieldAfter {
		y.n = 0
		runtime.Gosched()
	}
	return n, err
}
