package storage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/instance"
)

// logsOf returns the logs in a directory, the newest last.
func logsOf(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	files, err := fs.List(dir)
	must(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return !instance.IsLog(f) })
	slices.Sort(files)
	return files
}

// TestMissingLog: a store whose newest log is gone, after a crash or a clean end, is refused and
// named, no matter what was done before; with an empty file in its place it is opened. One whose
// log is there is always opened.
func TestMissingLog(t *testing.T) {
	live := vfs.NewCrashableMem()
	models := map[string]*edits{testStore: newEdits(), storeName(1): newEdits()}
	for session := range 6 {
		e, stop := startEngine(t, Options{FS: live})
		for name, w := range models {
			if session == 0 {
				o := CreateOptions{}
				if name == storeName(1) {
					o.Small = true
				}
				must(t, e.Create(name, o))
			}
			s := take(t, e, name)
			if session%3 != 1 { // in others it is only read
				putDocs(t, s, w, docsOf{1, 100, numbered})
			}
			if session == 4 && s.inst.Opened() {
				must(t, s.inst.Flush())
				putDocs(t, s, w, docsOf{1, 100, numbered})
			}
			e.Release(s)
		}
		if session == 4 {
			flushSmall(t, e)
		}
		crashed := live.CrashClone(vfs.CrashCloneCfg{})
		stop()
		for what, fs := range map[string]*vfs.MemFS{"crashed": crashed, "closed": live.CrashClone(vfs.CrashCloneCfg{})} {
			t.Run(fmt.Sprint(what, " ", session), func(t *testing.T) { withoutLogs(t, fs, models) })
		}
	}
}

func withoutLogs(t *testing.T, base vfs.FS, models map[string]*edits) {
	t.Helper()
	for name, w := range models {
		dir := path.Join("data", SmallDir)
		if name == testStore {
			dir = path.Join("data", name)
		}
		fs := copyFiles(t, base)
		logs := logsOf(t, fs, dir)
		if len(logs) == 0 {
			t.Fatalf("no log in %s", dir)
		}
		newest := path.Join(dir, logs[len(logs)-1])
		must(t, fs.Remove(newest))
		e, stop := startEngine(t, Options{FS: fs, ReadOnly: true})
		_, err := e.Acquire(name)
		if !fault.Is(err, fault.Corruption) || !strings.Contains(err.Error(), path.Base(newest)) {
			t.Errorf("%s is opened to be read: %v", name, err)
		}
		stop()
		e, stop = startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
		if s, err := e.Acquire(name); !errors.Is(err, ErrLost) || !strings.Contains(fault.Reason(err), path.Base(newest)) {
			t.Errorf("%s without %s: %v", name, newest, err)
			if err == nil {
				e.Release(s)
			}
		}
		stop()
		f, err := fs.Create(newest, vfs.WriteCategoryUnspecified)
		must(t, err)
		must(t, f.Close())
		e, stop = startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
		if s, err := e.Acquire(name); err == nil { // one that is small may lack what it was made with
			must(t, s.Check(context.Background(), func(p string) { t.Error(p) }))
			e.Release(s)
		} else if name == testStore {
			t.Error(err)
		}
		stop()
		e, stop = startEngine(t, Options{FS: copyFiles(t, base)})
		s := take(t, e, name)
		w.compare(t, s)
		e.Release(s)
		stop()
	}
}
