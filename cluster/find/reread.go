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
	ended bool
	text  []byte
	work  *query.Work
}

// next moves to the next document that matches.
func (q *rereading) next(to *row) (bool, error) {
	for q.at >= len(q.found) {
		if q.ended {
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

// read reads the documents of the next rows.
func (q *rereading) read() error {
	r := q.rows
	var places []place
	for len(places) < q.window.Size() {
		var one row
		ok, err := r.merged(&one)
		if err != nil {
			return err
		}
		if !ok {
			q.ended = true
			break
		}
		places = append(places, place{append([]byte(nil), one.sort...), string([]byte(one.id))})
	}
	docs := make([]*shard.Doc, len(places))
	err := fanout.Each(len(places), func(i int) error {
		d, err := r.db.Open(r.ctx, cluster.OpenOptions{ID: places[i].id, R: r.find.R, Conflicts: r.find.Conflicts})
		if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
			return nil // deleted meanwhile
		}
		docs[i] = d
		return err
	})
	if err != nil {
		return err
	}
	q.found, q.at = q.found[:0], 0
	bytes := 0
	for i, d := range docs {
		if d == nil {
			continue
		}
		q.examined++
		bytes += d.Size()
		q.text = shard.AppendDoc(q.text[:0], d)
		ok, err := r.find.Selector.Match(q.work, q.text)
		if err != nil {
			return err
		}
		if ok {
			q.found = append(q.found, row{places[i], r.find.Fields.Append(nil, q.text)})
		}
	}
	return q.window.Read(len(places), bytes)
}
