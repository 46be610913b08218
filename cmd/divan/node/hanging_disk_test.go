package node

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestStopOnHangingDisk: on a disk on which writes neither succeed nor fail a node
// returns from Run all the same, and says which part is left behind.
func TestStopOnHangingDisk(t *testing.T) {
	cfg := inMemory(t)
	var hangs, stuck atomic.Bool
	mended := make(chan struct{})
	cfg.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if hangs.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			stuck.Store(true)
			<-mended
		}
		return nil
	}))
	cfg.StopWithin = 300 * time.Millisecond
	h := build(t, cfg)
	h.node.listeners.patience = 50 * time.Millisecond
	h.run()
	h.want("PUT", "/pond", "", "201")
	h.want("PUT", "/pond/frog", "{}", "201")
	hangs.Store(true)
	written := make(chan error, 1)
	go func() {
		_, err := h.try("PUT", h.url("/pond/toad"), "{}")
		written <- err
	}()
	eventually(t, "the disk hangs", stuck.Load)
	err := h.stop()
	if !errors.Is(err, ErrNotStopped) || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("Run: %v", err)
	}
	eventually(t, "the log says so", func() bool { return h.logged(0, "stopped by force") })
	close(mended)
	if err := <-written; err != nil {
		t.Log("its connection was cut off:", err)
	}
	h.node.stack.left.Wait()
}
