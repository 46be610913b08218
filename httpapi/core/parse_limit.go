package core

import (
	"io"
	"runtime"
)

// parseLimit bounds the work on large bodies, inflating and parsing: half of the
// processors do it at a time, so that the other half is there for clients that send less.
// No request has a turn while it waits for its client.
type parseLimit chan struct{}

func newParseLimit() parseLimit { return make(parseLimit, max(1, runtime.NumCPU()/2)) }

// freeBytes is how much of a body is read without a turn.
const freeBytes = 4 << 20

// limitedParse has a turn from a read to the next one, beyond the first bytes.
type limitedParse struct {
	r      io.Reader
	places parseLimit
	free   int64 // bytes
	has    bool
}

// Read implements io.Reader.
func (t *limitedParse) Read(p []byte) (int, error) {
	t.end()
	n, err := t.r.Read(p)
	if t.free -= int64(n); t.free < 0 && err == nil {
		t.places <- struct{}{}
		t.has = true
	}
	return n, err
}

// end gives the turn back.
func (t *limitedParse) end() {
	if t.has {
		t.has = false
		<-t.places
	}
}
