package conns

// queue is a list of connections, the oldest in front. The zero value is empty.
type queue struct{ front, back *element }

// element is the place of a connection in a queue.
type element struct {
	conn       *Conn
	in         *queue // nil: in none
	prev, next *element
}

// push appends a connection that is in no queue with this element.
func (q *queue) push(c *Conn, e *element) {
	e.leave()
	*e = element{conn: c, in: q, prev: q.back}
	if q.back != nil {
		q.back.next = e
	} else {
		q.front = e
	}
	q.back = e
}

// leave takes the element out of its queue, if it is in one.
func (e *element) leave() {
	q := e.in
	if q == nil {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		q.front = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		q.back = e.prev
	}
	*e = element{}
}

// looksAt bounds how many connections are looked at for one that may go.
const looksAt = 256

// find returns the first connection that is ok. Those that are not go to the
// back: the next search begins with others.
func (q *queue) find(ok func(*Conn) bool) *Conn {
	for range looksAt {
		e := q.front
		if e == nil {
			return nil
		}
		if ok(e.conn) {
			return e.conn
		}
		q.push(e.conn, e)
	}
	return nil
}

// first is find for a queue in which age decides: it looks from the front on and
// changes nothing.
func (q *queue) first(ok func(*Conn) bool) *Conn {
	e := q.front
	for range looksAt {
		if e == nil {
			return nil
		}
		if ok(e.conn) {
			return e.conn
		}
		e = e.next
	}
	return nil
}
