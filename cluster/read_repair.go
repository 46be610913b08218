package cluster

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/repair"
)

// maxReadRepairs is how many documents are under read repair at the same time;
// what comes beyond that is left to the synchronisation of copies.
const maxReadRepairs = 32

// readRepairs is the documents under read repair, so that many reads of one
// document repair it once.
//
// LOCKS: mu guards the map only.
type readRepairs struct {
	mu   sync.Mutex
	busy map[repairedDoc]struct{}
}

type repairedDoc struct{ db, id string }

// begin reports whether the caller is the one to repair a document.
func (r *readRepairs) begin(k repairedDoc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.busy[k]; taken || len(r.busy) >= maxReadRepairs {
		return false
	}
	if r.busy == nil {
		r.busy = make(map[repairedDoc]struct{})
	}
	r.busy[k] = struct{}{}
	return true
}

func (r *readRepairs) end(k repairedDoc) {
	r.mu.Lock()
	delete(r.busy, k)
	r.mu.Unlock()
}

// repairLater brings copies in line about one document, in the background: a
// read has seen that they differ.
func (d *DB) repairLater(ctx context.Context, id string, copies []fanout.Target) {
	key := repairedDoc{d.meta.Name, id}
	if !d.c.readRepairs.begin(key) {
		return
	}
	ok := d.c.detach(ctx, func(ctx context.Context) {
		defer d.c.readRepairs.end(key)
		err := d.readRepair(ctx, id, copies)
		d.c.figures.Repaired(err)
		if err != nil {
			d.c.log.Debug("document not repaired", zap.String("db", d.meta.Name), zap.String("id", id), zap.Error(err))
		}
	})
	if !ok {
		d.c.readRepairs.end(key)
	}
}

// readRepair brings copies in line about one document. What cannot be brought
// to a copy now is noted for repair.
func (d *DB) readRepair(ctx context.Context, id string, copies []fanout.Target) error {
	var failure error
	for _, from := range copies {
		for _, to := range copies {
			if from == to {
				continue
			}
			if err := d.copyDocs(ctx, from, to, []string{id}); err != nil {
				d.c.missed(to)
				failure = err
			}
		}
	}
	return failure
}

// copyDocs gives a copy everything that another one has of some documents.
func (d *DB) copyDocs(ctx context.Context, from, to fanout.Target, ids []string) error {
	return repair.NewCopier(d.end(from), d.end(to), d.limits(), d.c.log).Documents(ctx, ids)
}

// end is a copy as repair.Copier takes it.
func (d *DB) end(t fanout.Target) repair.End {
	return repair.End{Node: t.Node, Name: t.Name, Copy: d.c.replica(t)}
}
