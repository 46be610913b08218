package lost

import "sync"

// droppedCopies is the names of copies of this node that were dropped because their
// databases were deleted. The name of a copy is never given again.
type droppedCopies struct {
	dropping sync.Mutex
	dropped  map[string]struct{}
	queue    []string // in the order of their coming
}

// maxDropped bounds what is remembered: by then this node has heard of it, or has been
// away for long.
const maxDropped = 10_000

// NoteDropped notes that a copy is dropped because its database was deleted.
func (d *droppedCopies) NoteDropped(name string) {
	d.dropping.Lock()
	defer d.dropping.Unlock()
	if _, known := d.dropped[name]; known {
		return
	}
	if d.dropped == nil {
		d.dropped = make(map[string]struct{})
	}
	d.dropped[name] = struct{}{}
	d.queue = append(d.queue, name)
	if len(d.queue) > maxDropped {
		delete(d.dropped, d.queue[0])
		d.queue = d.queue[1:]
	}
}

// Dropped reports whether a copy was dropped: this node makes it no more, although it may
// not have heard yet that the database is deleted.
func (d *droppedCopies) Dropped(name string) bool {
	d.dropping.Lock()
	defer d.dropping.Unlock()
	_, ok := d.dropped[name]
	return ok
}
