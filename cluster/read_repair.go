package cluster

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"divan/cluster/figures"
	"divan/cluster/repair"
	"divan/shard/ring"
)

// maxReadRepairs is how many documents are under read repair at the same time;
// what comes beyond that is left to the synchronisation of copies.
const maxReadRepairs = 32

// readRepairs is the documents under read repair, so that many reads of one
// document repair it once.
//
// LOCKS: mu guards the map only.
type readRepairs struct {
	figures *figures.Counters

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

// later brings copies in line about one document, in the background: a
// read has seen that they differ.
func (r *readRepairs) later(ctx context.Context, d *replicaSet, id string, copies []ring.Replica) {
	key := repairedDoc{d.meta.Name, id}
	if !r.begin(key) {
		return
	}
	ok := d.detach(ctx, func(ctx context.Context) {
		defer r.end(key)
		err := d.alignDoc(ctx, id, copies)
		r.figures.Repaired(err)
		if err != nil {
			d.log.Debug("document not repaired", zap.String("db", d.meta.Name), zap.String("id", id), zap.Error(err))
		}
	})
	if !ok {
		r.end(key)
	}
}

// alignDoc brings copies in line about one document. What cannot be brought
// to a copy now is noted for repair.
func (d *replicaSet) alignDoc(ctx context.Context, id string, copies []ring.Replica) error {
	var failure error
	for _, from := range copies {
		for _, to := range copies {
			if from == to {
				continue
			}
			if err := d.copyDocs(ctx, from, to, []string{id}); err != nil {
				d.missed(to)
				failure = err
			}
		}
	}
	return failure
}

// copyDocs gives a copy everything that another one has of some documents.
func (d *replicaSet) copyDocs(ctx context.Context, from, to ring.Replica, ids []string) error {
	return d.copier(from, to).Documents(ctx, ids)
}

// copier returns what brings documents from one copy to another.
func (d *replicaSet) copier(from, to ring.Replica) *repair.Copier {
	return repair.NewCopier(d.endOf(from), d.endOf(to), d.limits(), d.log)
}

// endOf is a copy as repair.Copier takes it.
func (d *replicaSet) endOf(t ring.Replica) repair.End {
	return repair.End{Replica: t, Copy: d.replica(t)}
}
