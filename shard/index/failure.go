package index

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/fault"
)

// DocumentError says that a document cannot be indexed. The index goes on without it if it
// is LeftOut, and stays before it otherwise: that fails requests, as CouchDB fails them.
type DocumentError struct {
	ID       string
	Function string // what failed, "map function of view x"; may be empty
	Err      error
	Bare     bool // clients are told the reason of Err as it is; the rest is in the log
	LeftOut  bool // it needs more than a document may need
}

// DefinitionError is the error of a document that the definition of a Mango index cannot be
// applied to. The document is left out, unless a selector took too long: that depends on
// the selector, and fails requests.
func DefinitionError(id string, err error) *DocumentError {
	return &DocumentError{ID: id, Function: "index definition", Err: err, LeftOut: !fault.Is(err, fault.InvalidSelector)}
}

// Error implements error.
func (e *DocumentError) Error() string {
	return e.Function + " failed for " + strconv.Quote(e.ID) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DocumentError) Unwrap() error { return e.Err }

// Back-off of a document that fails: the time until it is tried again doubles. One that
// was changed is tried at once, but not for ever: a client that writes it again and
// again, or two that fail in turn, would have the function run all the time.
const (
	firstRetry  = time.Second
	lastRetry   = 5 * time.Minute
	freeChanges = 8 // after so many the time from change to try doubles as well
	lastChanged = 15 * time.Second
)

// failure is a follower's record of a document that fails.
type failure struct {
	cause *DocumentError
	seq   uint64 // of the document's last change then; 0: it is gone
	tries int
	next  time.Time // when it is tried again, unless the document is changed before
	err   error     // what requests are told until then

	changes int       // after which a document failed again, since the index was up to date
	changed time.Time // from then on a change counts
}

// retryAfter is how long a document waits that has failed so often.
func retryAfter(tries int) time.Duration {
	wait := firstRetry
	for ; tries > 1 && wait < lastRetry; tries-- {
		wait *= 2
	}
	return min(wait, lastRetry)
}

// failed notes how an update ended.
func (f *follower) failed(ctx context.Context, err error) error {
	var cause *DocumentError
	if !errors.As(err, &cause) {
		switch {
		case err == nil:
			f.retryAtOnce()
		case fault.Is(err, fault.InsufficientStorage):
			f.m.noSpace.await(f)
		}
		return err
	}
	now := &failure{cause: cause, tries: 1}
	var lookUp error
	if now.seq, lookUp = f.lastChange(ctx, cause.ID); lookUp != nil {
		return lookUp
	}
	f.mu.Lock()
	if before := f.mu.failure; before != nil {
		now.changes = before.changes
		if before.cause.ID == cause.ID && before.seq == now.seq {
			now.tries += before.tries
		} else {
			now.changes++
		}
	}
	wait := retryAfter(now.tries)
	if now.changes > freeChanges {
		again := min(retryAfter(now.changes-freeChanges), lastChanged)
		now.changed, wait = time.Now().Add(again), max(wait, again)
	}
	now.next = time.Now().Add(wait)
	now.err = now.fault(f.spec.Design)
	f.mu.failure = now
	f.mu.Unlock()
	f.log.Warn("an index cannot go on at a document", zap.String("design", f.spec.Design), zap.String("document", cause.ID),
		zap.String("function", cause.Function), zap.Error(cause.Err), zap.Int("tries", now.tries), zap.Duration("next", wait))
	return now.err
}

// fault returns the error for clients.
func (w *failure) fault(design string) error {
	out := &fault.Error{Kind: fault.BadFunction, Err: w.cause}
	var f *fault.Error
	if errors.As(w.cause.Err, &f) && f.Kind != fault.Internal {
		out.Kind, out.Code, out.Reason = f.Kind, f.Code, f.Reason
	}
	if out.Reason == "" {
		out.Reason = "The document cannot be indexed."
	}
	if w.cause.Bare {
		return out
	}
	where := design
	if w.cause.Function != "" {
		where = w.cause.Function + " of " + design
	}
	after := ""
	if w.changed.Before(w.next) && !w.changed.IsZero() {
		after = " after " + w.changed.UTC().Format(time.RFC3339)
	}
	out.Reason = fmt.Sprintf("%s (document %s, %s; it is tried again at %s, or when it is changed%s)",
		out.Reason, strconv.Quote(w.cause.ID), where, w.next.UTC().Format(time.RFC3339), after)
	return out
}

// refused returns why no update can begin now: the disk has too little space, or a
// document has failed that is not to be tried yet.
func (f *follower) refused(ctx context.Context) error {
	if err := f.space(); err != nil {
		return err
	}
	f.mu.Lock()
	w := f.mu.failure
	f.mu.Unlock()
	if w == nil || !time.Now().Before(w.next) {
		return nil
	}
	seq, err := f.lastChange(ctx, w.cause.ID)
	switch {
	case err != nil:
		return err
	case seq != w.seq && !time.Now().Before(w.changed):
		return nil
	}
	return w.err
}

// failing reports whether the next document has failed before.
func (f *follower) failing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.failure != nil
}

// retryAtOnce forgets that a document has failed.
func (f *follower) retryAtOnce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.failure = nil
}

// lastChange returns the sequence of the last change of a document, 0 if there is
// none.
func (f *follower) lastChange(ctx context.Context, id string) (uint64, error) {
	s, err := f.m.o.Shards.Changes(ctx, shard.ChangesRequest{
		Copy: f.copyName, Filter: shard.Filter{Kind: shard.FilterDocIDs, IDs: []string{id}},
	})
	if err != nil {
		return 0, fmt.Errorf("look up document %q: %w", id, err)
	}
	defer s.Close()
	var b shard.ChangeBatch
	if _, err := s.Next(&b); err != nil {
		return 0, fmt.Errorf("look up document %q: %w", id, err)
	}
	if len(b.Rows) == 0 {
		return 0, nil
	}
	return b.Rows[0].Seq, nil
}
