package instance

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// failure is why an instance has stopped.
type failure struct{ err error }

// failureCell holds the failure of an instance, nil while it works.
type failureCell struct {
	atomic.Pointer[failure]
	set chan struct{} // closed when there is one
}

// Fail stops the instance: every later call returns the error. The first failure
// stays. What the store showed but had not made durable is gone with the next
// open, which is why nothing may be read from it any more.
func (i *Instance) Fail(cause error) error {
	kind, reason := fault.Unavailable, "The shard has stopped after a failure of its disk."
	if errors.Is(cause, syscall.ENOSPC) {
		kind, reason = fault.InsufficientStorage, "No space left on the disk."
	}
	f := &failure{fault.Wrap(kind, reason, cause)}
	if i.failed.CompareAndSwap(nil, f) {
		close(i.failed.set)
		i.log.Error("store stopped", zap.Error(cause))
		return f.err
	}
	return i.failed.Load().err
}

// Err returns why the instance has stopped, nil while it works. The error is
// fault.Unavailable, or fault.InsufficientStorage when the disk is full.
func (i *Instance) Err() error {
	if f := i.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// Failed is closed when the instance stops.
func (i *Instance) Failed() <-chan struct{} { return i.failed.set }

// DiskError marks an error of a full disk, and the want of file descriptors.
func DiskError(doing string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fault.Wrap(fault.InsufficientStorage, "No space left on the disk.", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.Wrap(fault.Unavailable, "Too many files are open.", err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
