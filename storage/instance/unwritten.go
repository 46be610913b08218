package instance

import "sync"

// unwritten is how many bytes an instance without a log has in memory that its flushes
// are going to write. Shared.Pending is told of them.
type unwritten struct {
	mu      sync.Mutex
	coming  int64 // in a batch that is being committed
	fresh   int64 // no flush has begun that takes them
	flushed int64 // one has
}

// Unwritten returns how many bytes were committed, about, that no table holds yet.
func (i *Instance) Unwritten() int64 {
	u := &i.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.coming + u.fresh + u.flushed
}

// Committing notes that a batch of so many bytes is going to be committed.
func (i *Instance) Committing(bytes int) {
	u := &i.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming += int64(bytes)
	i.pending(int64(bytes))
}

// Committed notes that it was.
func (i *Instance) Committed(bytes int) {
	u := &i.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming, u.fresh = u.coming-int64(bytes), u.fresh+int64(bytes)
}

// flushBegins moves what was committed to a flush of memtables of that size.
func (i *Instance) flushBegins(bytes uint64) {
	u := &i.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	moved := u.fresh
	if about := bytes + bytes/64 + 4096; about < uint64(moved) { // a batch has a header that a memtable has not
		moved = int64(bytes)
	}
	u.flushed, u.fresh = u.flushed+moved, u.fresh-moved
}

// flushEnds forgets what the flush has written, or was given up.
func (i *Instance) flushEnds() {
	u := &i.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	i.pending(-u.flushed)
	u.flushed = 0
}

func (i *Instance) pending(bytes int64) {
	if i.shared.Pending != nil && bytes != 0 {
		i.shared.Pending(bytes)
	}
}
