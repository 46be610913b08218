package replicator

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// This file is about documents whose replication has no id yet: the text of a
// filter function is part of it. That is read again now and then. So is it tried
// again to write down that a replication can never run.

const (
	resolvers   = 32          // filter functions that are read at once
	readTimeout = time.Minute // of one
	rereadAfter = time.Minute
	// The pause after an attempt that failed is random, up to so much, and up to
	// twice as much after each further one.
	attemptPause       = 64 * time.Second
	maxAttemptDoubling = 12
)

// failedAttempt notes that the replication of a document cannot begin. The
// caller holds mu.
func (d *document) failedAttempt(reason string, now time.Time) {
	longest := attemptPause << min(d.attempts, maxAttemptDoubling)
	d.attempts++
	d.reason, d.updated, d.due = reason, now, now.Add(rand.N(longest))
}

// poke has the resolver look soon.
func (r *Replicator) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// resolve finds ids until ctx ends.
func (r *Replicator) resolve(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	free := make(chan struct{}, resolvers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		due, next := r.due(time.Now(), cap(free)-len(free))
		for _, d := range due {
			free <- struct{}{} // there is room: no other goroutine takes any
			reading.Go(func() {
				defer func() { <-free; r.poke() }()
				r.resolveOne(ctx, d)
			})
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// due returns at most that many documents whose filter functions are to be read now, and marks them
// as being read. next is when others will be due; zero: unknown. Documents that wait to run come
// first: a silent source holds up the goroutine that reads from it for long, and documents whose
// replications run or whose reading failed before can wait for their turn.
func (r *Replicator) due(now time.Time, most int) (out []*document, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.mu.docs {
		switch {
		case d.resolving || d.job != nil && !d.filtered():
		case !d.due.After(now):
			out = append(out, d)
		case next.IsZero() || d.due.Before(next):
			next = d.due
		}
	}
	slices.SortFunc(out, func(a, b *document) int {
		return cmp.Or(cmp.Compare(a.patience(), b.patience()), a.due.Compare(b.due))
	})
	out = out[:min(most, len(out))]
	for _, d := range out {
		d.resolving = true
	}
	return out, next
}

// patience tells how well a document can wait for its filter function. The caller
// holds mu.
func (d *document) patience() int {
	if d.job != nil {
		return maxAttemptDoubling
	}
	return min(d.attempts, maxAttemptDoubling)
}

// resolveOne finds the id of the replication of a document, and starts it when
// that is another one than before.
func (r *Replicator) resolveOne(ctx context.Context, d *document) {
	r.mu.Lock()
	failed := d.failed
	r.mu.Unlock()
	if failed != "" {
		r.fail(ctx, d, failed)
		return
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	code, err := r.filterCode(limited, d.spec)
	r.mu.Lock()
	d.resolving = false
	j, now := d.job, time.Now()
	d.due = now.Add(rereadAfter)
	switch {
	case r.mu.docs[d.key] != d || ctx.Err() != nil:
		r.mu.Unlock()
		return
	case err != nil:
		if j == nil { // else it goes on with the one it has
			d.failedAttempt(describe(err), now)
		}
		r.mu.Unlock()
		return
	}
	id := d.spec.ID(r.uuid(), code)
	if j != nil && j.id == id {
		r.mu.Unlock()
		return
	}
	d.job = nil
	d.resolving = true
	r.mu.Unlock()
	if j != nil {
		r.runner.Remove(&j.Job)
	}
	r.start(ctx, d, id)
}
