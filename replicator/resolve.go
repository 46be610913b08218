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
// caller holds Documents.mu.
func (d *document) failedAttempt(reason string, now time.Time) {
	longest := attemptPause << min(d.attempts, maxAttemptDoubling)
	d.attempts++
	d.reason, d.updated, d.due = reason, now, now.Add(rand.N(longest))
}

// poke has the resolver look soon.
func (s *Documents) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// resolve finds ids until ctx ends.
func (s *Documents) resolve(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	free := make(chan struct{}, resolvers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		due, next := s.due(time.Now(), cap(free)-len(free))
		for _, d := range due {
			free <- struct{}{} // there is space: no other goroutine takes any
			reading.Go(func() {
				defer func() { <-free; s.poke() }()
				s.resolveOne(ctx, d)
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
func (s *Documents) due(now time.Time, most int) (out []*document, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.mu.docs {
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
// holds Documents.mu.
func (d *document) patience() int {
	if d.job != nil {
		return maxAttemptDoubling
	}
	return min(d.attempts, maxAttemptDoubling)
}

// resolveOne finds the id of the replication of a document, and starts it when
// that is another one than before.
func (s *Documents) resolveOne(ctx context.Context, d *document) {
	s.mu.Lock()
	failed := d.failed
	s.mu.Unlock()
	if failed != "" {
		s.fail(ctx, d, failed)
		return
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	code, err := s.opener.filterCode(limited, d.spec)
	s.mu.Lock()
	d.resolving = false
	j, now := d.job, time.Now()
	d.due = now.Add(rereadAfter)
	switch {
	case s.mu.docs[d.key] != d || ctx.Err() != nil:
		s.mu.Unlock()
		return
	case err != nil:
		if j == nil { // else it goes on with the one it has
			d.failedAttempt(describe(err), now)
		}
		s.mu.Unlock()
		return
	}
	id := d.spec.ID(s.config.uuid(), code)
	if j != nil && j.id == id {
		s.mu.Unlock()
		return
	}
	d.job = nil
	d.resolving = true
	s.mu.Unlock()
	if j != nil {
		s.jobs.runner.Remove(&j.Job)
	}
	s.start(ctx, d, id)
}
