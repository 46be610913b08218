package script

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// A document takes up to sixty times its text in a VM, when it is all empty objects,
// and twice that while it is made read-only: what CouchDB takes at 2 MB would not fit.
// So a VM gets more memory for the moment of a large document, out of a share that
// all VMs of the node have together.

const (
	textWeight  = 128       // bytes of memory for each byte of a text
	largeMemory = 512 << 20 // that all VMs have together beyond their own, and those of validations once more: four documents of 1 MB at a time, or a larger one
)

// makeRoom lets the vm have the memory that a text of so many bytes may take, until
// the call ends. It waits until others have given back theirs; what it had itself
// before, it gives back first.
func (v *vm) makeRoom(parent context.Context, text int) error { //nolint:contextcheck // there may be none
	e := v.set.engine
	need := min(int64(text)*textWeight, largeMemory)
	if need <= e.o.Memory/2 || need <= v.room {
		return nil
	}
	v.leaveRoom()
	if parent == nil {
		parent = context.Background() //nolint:forbidigo // a reduction that nothing but time limits
	}
	if !v.largeMemory().TryAcquire(need) {
		if err := v.awaitRoom(parent, need); err != nil {
			return err
		}
	}
	v.room = need
	v.limitMemory()
	return nil
}

// awaitRoom waits for memory, an impatient caller as long as a call may take. It is not
// the script's time, and others have the turn meanwhile.
func (v *vm) awaitRoom(parent context.Context, need int64) error {
	ctx := parent
	if !fairqueue.CallerOf(parent).Patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(parent, v.deadline)
		defer cancel()
	}
	began := time.Now()
	v.lease.turn.Leave(began)
	if err := v.largeMemory().Acquire(ctx, need); err != nil {
		v.lease.turn.Abandon()
		if parent.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return fault.New(fault.Timeout, "No memory became free for a large document in time.")
		}
		return err
	}
	now := time.Now()
	if err := v.lease.turn.Return(v.done, now); err != nil {
		v.largeMemory().Release(need)
		return err
	}
	v.deadline = v.deadline.Add(time.Since(began))
	return nil
}

// largeMemory is what the use of the VM takes such memory from: a write waits for no
// index, which may need it for long.
func (v *vm) largeMemory() *semaphore.Weighted { return v.set.engine.large[v.lease.kind.group()] }

// leaveRoom gives back what makeRoom took.
func (v *vm) leaveRoom() {
	if v.room == 0 {
		return
	}
	v.largeMemory().Release(v.room)
	v.room = 0
	v.limitMemory()
}

func (v *vm) limitMemory() {
	lib.XJS_SetMemoryLimit(v.tls, v.rt, libc.Tsize_t(v.set.engine.o.Memory+v.room))
}
