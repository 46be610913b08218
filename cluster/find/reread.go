package find

import (
	"divan/cluster"
	"divan/cluster/fanout"
	"divan/cluster/window"
	"divan/shard"
	"divan/shard/query"
	"divan/storage/fault"
)

// mostReread is how many documents are read from several copies at a time, at most.
const mostReread = 64

// rereading reads the documents of rows from r copies, and matches them here.
type rereading struct {
	rows     *Rows
	window   window.Window
	examined uint64

	found []row // that match, of the last window
	at    int
	again []place // of documents that were read and had no space
	ended bool
	text  []byte
	work  *query.Work
}

// next moves to the next document that matches.
func (q *rereading) next(to *row) (bool, error) {
	for q.at >= len(q.found) {
		if q.ended && len(q.again) == 0 {
			return false, nil
		}
		if err := q.read(); err != nil {
			return false, err
		}
	}
	*to = q.found[q.at]
	q.at++
	return true, nil
}

// rereadAtOnce is how many documents are read side by side: so many may go beyond the bound of
// a window.
const rereadAtOnce = 8

// read reads the documents of the next rows.
func (q *rereading) read() error {
	q.found, q.at = q.found[:0], 0
	var read []reread
	bytes := 0
	for len(read) < q.window.Size() && bytes < window.MaxBytes && (!q.ended || len(q.again) > 0) {
		places, err := q.places(min(rereadAtOnce, q.window.Size()-len(read)))
		if err != nil {
			return err
		}
		docs, err := q.open(places)
		if err != nil {
			return err
		}
		for i, d := range docs {
			read = append(read, reread{at: places[i], size: d.Size(), found: len(q.found), examined: q.examined})
			bytes += d.Size()
			if err := q.match(places[i], d); err != nil {
				return err
			}
		}
	}
	held, err := q.window.Hold(len(read), func(i int) int { return read[i].size })
	if held < len(read) {
		clear(q.found[read[held].found:])
		q.found, q.examined = q.found[:read[held].found], read[held].examined
		left := q.again
		q.again = nil
		for _, one := range read[held:] {
			q.again = append(q.again, one.at)
		}
		q.again = append(q.again, left...)
	}
	return err
}

// reread is a document of a window, and how far all was before it.
type reread struct {
	at       place
	size     int
	found    int
	examined uint64
}

// places returns where the next rows are, up to so many.
func (q *rereading) places(most int) (out []place, err error) {
	n := min(most, len(q.again))
	out, q.again = append(out, q.again[:n]...), q.again[n:]
	for len(out) < most && !q.ended {
		var one row
		ok, err := q.rows.merged(&one)
		if err != nil {
			return nil, err
		}
		if !ok {
			q.ended = true
			break
		}
		out = append(out, place{append([]byte(nil), one.sort...), string([]byte(one.id))})
	}
	return out, nil
}

// open reads documents from several copies; nil stands for one that was deleted meanwhile.
func (q *rereading) open(places []place) ([]*shard.Doc, error) {
	r := q.rows
	docs := make([]*shard.Doc, len(places))
	err := fanout.Each(len(places), func(i int) error {
		d, err := r.db.Open(r.ctx, cluster.OpenOptions{ID: places[i].id, R: r.find.R, Conflicts: r.find.Conflicts})
		if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
			return nil
		}
		docs[i] = d
		return err
	})
	return docs, err
}

// match keeps a document that matches.
func (q *rereading) match(at place, d *shard.Doc) error {
	if d == nil {
		return nil
	}
	q.examined++
	q.text = shard.AppendDoc(q.text[:0], d)
	ok, err := q.rows.find.Selector.Match(q.work, q.text)
	if ok && err == nil {
		q.found = append(q.found, row{at, q.rows.find.Fields.Append(nil, q.text)})
	}
	return err
}
