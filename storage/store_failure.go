package storage

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// failure is why a store has stopped.
type failure struct{ err error }

// failureCell holds the failure of a store, nil while it works.
type failureCell struct {
	atomic.Pointer[failure]
	set chan struct{} // closed when there is one
}

// fail stops the store: every later call returns the error. The first failure
// stays. What the store showed but had not made durable is gone with the next
// open, which is why nothing may be read from it any more.
func (s *Store) fail(cause error) error {
	kind, reason := fault.Unavailable, "The shard has stopped after a failure of its disk."
	if errors.Is(cause, syscall.ENOSPC) {
		kind, reason = fault.InsufficientStorage, "No space left on the disk."
	}
	f := &failure{fault.Wrap(kind, reason, cause)}
	if s.failed.CompareAndSwap(nil, f) {
		close(s.failed.set)
		s.log.Error("store stopped", zap.Error(cause))
		return f.err
	}
	return s.failed.Load().err
}

// Err returns why the store has stopped, nil while it works. The error is
// fault.Unavailable, or fault.InsufficientStorage when the disk is full.
func (s *Store) Err() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// diskError marks an error of a full disk.
func diskError(doing string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fault.Wrap(fault.InsufficientStorage, "No space left on the disk.", err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
