package instance

import "sync"

// Unwritten is how many bytes an instance without a log has in memory that its flushes
// are going to write. Shared.Pending is told of them. It is safe for concurrent use.
type Unwritten struct {
	pending func(bytes int64) // nil: not told
	mu      sync.Mutex
	coming  int64 // in a batch that is being committed
	fresh   int64 // no flush has begun that takes them
	flushed int64 // one has
	early   int64 // of flushed, in a batch whose commit has not come back yet
}

// Bytes returns how many bytes were committed, about, that no table holds yet.
func (u *Unwritten) Bytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.coming + u.fresh + u.flushed
}

// Committing notes that a batch of so many bytes is going to be committed.
func (u *Unwritten) Committing(bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming += int64(bytes)
	u.tell(int64(bytes))
}

// Committed notes that it was.
func (u *Unwritten) Committed(bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := int64(bytes)
	taken := min(left, u.early)
	left -= taken
	u.early, u.coming, u.fresh = u.early-taken, u.coming-left, u.fresh+left
}

// flushBegins moves what was committed to a flush of memtables of that size. A flush may
// take a batch before its commit comes back.
func (u *Unwritten) flushBegins(bytes uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	moved := u.fresh
	if about := bytes + bytes/64 + 4096; about < uint64(moved) { // a batch has a header that a memtable has not
		moved = int64(bytes)
	}
	var early int64
	if rest := int64(bytes) - moved; rest >= u.coming-u.coming/8 { // what a memtable has besides is less
		early = u.coming
	}
	u.coming, u.early = u.coming-early, u.early+early
	u.flushed, u.fresh = u.flushed+moved+early, u.fresh-moved
}

// flushEnds forgets what the flush has written, or was given up.
func (u *Unwritten) flushEnds() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(-u.flushed)
	u.flushed = 0
}

func (u *Unwritten) tell(bytes int64) {
	if u.pending != nil && bytes != 0 {
		u.pending(bytes)
	}
}
