package cluster

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/storage/fault"
)

// birth is a database that this node creates. A copy that it makes of it
// meanwhile is new and holds all there is: every other node makes only copies
// that have to be filled, so nobody can have written to a range before this
// node has made the first complete copy of it, or before its holders have found
// out, all of them, that none of them has anything.
type birth struct {
	name  string
	until time.Time // of one in doubt: how long it is counted on; zero: a request creates it
}

// over reports whether a birth is not counted on any more.
func (b birth) over(now time.Time) bool { return !b.until.IsZero() && !now.Before(b.until) }

// doubtTime is how long a creation may turn out to have succeeded after nobody
// could tell what came of it: longer than it takes to elect a leader, and to
// catch up with it.
const doubtTime = time.Minute

// expect notes that this node is creating the database with that id, until
// forget is called: copies that it makes of it meanwhile are new.
func (h *handles) expect(id [16]byte) (forget func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expectLocked(id)
}

func (h *handles) expectLocked(id [16]byte) (forget func()) {
	h.births[id] = birth{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.births, id)
	}
}

// expected reports whether this node is creating the database with that id.
func (h *handles) expected(id [16]byte) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	b, ok := h.births[id]
	return ok && !b.over(time.Now())
}

// doubt notes that the creation of a database was proposed and nobody knows what
// came of it. It is expected for a while without a request.
func (h *handles) doubt(id [16]byte, name string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetDoubtsLocked(now)
	h.births[id] = birth{name: name, until: now.Add(doubtTime)}
}

func (h *handles) forgetDoubtsLocked(now time.Time) {
	maps.DeleteFunc(h.births, func(_ [16]byte, b birth) bool { return b.over(now) })
}

// doubts returns the creations in doubt, and forgets those that are over.
func (h *handles) doubts() map[[16]byte]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetDoubtsLocked(time.Now())
	out := make(map[[16]byte]string)
	for id, b := range h.births {
		if !b.until.IsZero() {
			out[id] = b.name
		}
	}
	return out
}

// settle ends the doubt about a creation that has turned out to have succeeded.
// Only the first one who asks is told so; the database is then expected until
// it calls forget.
func (h *handles) settle(id [16]byte) (forget func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.births[id]
	if !ok || b.until.IsZero() || b.over(time.Now()) {
		return nil, false
	}
	return h.expectLocked(id), true
}

// unsure ends a creation of which failure says that nobody knows what came of
// it. If the database is there by now, this is its creation after all;
// otherwise it is counted on for a while.
func (c *Coordinator) unsure(ctx context.Context, wish *meta.Create, failure error) error {
	c.handles.doubt(wish.ID, wish.Name)
	m, ok := c.meta.Database(wish.Name)
	if !ok || m.ID != wish.ID {
		return failure // if it comes later, there will be an event
	}
	forget, first := c.handles.settle(wish.ID)
	if !first {
		return failure
	}
	defer forget()
	return c.populate(ctx, m)
}

// bear makes the copies of a database that has come, if its creation is in
// doubt: the client was told that nobody knows, but while a node that is to
// hold copies is away, nobody else could ever find out that they are empty.
func (c *Coordinator) bear(ctx context.Context, m *meta.Database) {
	forget, ok := c.handles.settle(m.ID)
	if !ok {
		return
	}
	c.log.Info("creation without an answer has succeeded", zap.String("db", m.Name))
	ok = c.detach(ctx, func(ctx context.Context) {
		defer forget()
		if err := c.populate(ctx, m); err != nil && !fault.Is(err, fault.Closed) {
			c.log.Error("copies of a new database not made", zap.String("db", m.Name), zap.Error(err))
		}
	})
	if !ok {
		forget()
	}
}

// bearAll does that for databases that may have come without an event.
func (c *Coordinator) bearAll(ctx context.Context) {
	for id, name := range c.handles.doubts() {
		if m, ok := c.meta.Database(name); ok && m.ID == id {
			c.bear(ctx, m)
		}
	}
}
