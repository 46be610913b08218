package instance

import "time"

// A store whose compactions fall behind must not take more writes: each read would
// look into more and more tables. Pebble stalls them in Commit, where nothing ends
// the wait while compactions fail; so its limit is out of reach (neverStall), and
// Admit waits instead.

const (
	stallTables = 20 // sublevels of L0 at which writes wait
	neverStall  = 1 << 20
	// stallLook is how often a stalled write looks whether it has to wait any longer.
	stallLook = 250 * time.Millisecond
)

// Stalled reports whether compactions are so far behind that Admit waits.
func (i *Instance) Stalled() bool { return i.DB().Metrics().Levels[0].Sublevels >= stallTables }

// Admit returns when the instance may take another batch, or done is closed. The
// error says why it cannot for now: compactions fail.
func (i *Instance) Admit(done <-chan struct{}) error {
	flushes := i.health.flushes.Load()
	if flushes == i.health.admitted.Load() {
		return nil
	}
	for {
		if !i.Stalled() {
			i.health.admitted.Store(flushes)
			return nil
		}
		if f := i.health.failed.Load(); f != nil {
			return DiskError("compaction", f.err)
		}
		look := time.NewTimer(stallLook)
		select {
		case <-look.C:
		case <-i.Failed():
		case <-done:
			look.Stop()
			return nil
		}
		look.Stop()
		if err := i.Err(); err != nil {
			return err
		}
	}
}
