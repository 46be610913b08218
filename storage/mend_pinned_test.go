package storage

import (
	"errors"
	"path"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
)

// TestMendWhilePinned: while a request keeps the instance of the small stores from being opened anew, a store that can
// be mended is not called lost.
func TestMendWhilePinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := vfs.NewCrashableMem()
		e, stop := startEngine(t, Options{FS: live})
		models := makeSmall(t, e, 0, 5, docsOf{10, 10, numbered})
		flushSmall(t, e)
		fs := live.CrashClone(vfs.CrashCloneCfg{})
		stop()
		for _, p := range placesOf(t, fs, path.Join("data", SmallDir)) {
			if strings.HasSuffix(p.file, ".sst") && strings.HasPrefix(p.what, "data") {
				flipBits(t, fs, p.file, 8*(p.begin+p.length/2))
			}
		}
		e, stop = startEngine(t, Options{FS: fs})
		defer stop()
		pin, err := e.small.acquire(false)
		must(t, err)
		unavailable := 0
		for i := range models {
			s, err := e.Acquire(storeName(i))
			if err == nil {
				e.Release(s)
				continue
			}
			unavailable++
			if !fault.Is(err, fault.Unavailable) || errors.Is(err, ErrLost) {
				t.Errorf("store %d while the files cannot be opened anew: %v", i, err)
			}
		}
		if unavailable == 0 || len(e.Losses().Contents()) > 0 {
			t.Errorf("%d stores cannot be read, lost are %q", unavailable, e.Losses().Contents())
		}
		e.cache.release(&pin.handle)
		allThereOf(t, e, models)
	})
}
