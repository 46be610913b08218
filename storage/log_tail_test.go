package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/instance"
)

// writtenLog makes a store whose log has some batches, as a process leaves it that
// was killed, and returns the path of the log.
func writtenLog(t *testing.T) (fs *vfs.MemFS, log string) {
	t.Helper()
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	must(t, e.Create(lostName, CreateOptions{}))
	s := take(t, e, lostName)
	for i := range 5 {
		b := s.NewBatch()
		b.PutLocal(fmt.Sprintf("_local/%d", i), bytes.Repeat([]byte("x"), 1000))
		commit(t, b)
	}
	fs = live.CrashClone(vfs.CrashCloneCfg{})
	e.Release(s)
	stop()
	files, err := fs.List(e.env.path(lostName))
	must(t, err)
	for _, f := range files {
		if path := fs.PathJoin(e.env.path(lostName), f); instance.IsLog(f) && len(content(t, fs, path)) > 0 {
			log = path
		}
	}
	if log == "" {
		t.Fatalf("no log in %q", files)
	}
	return fs, log
}

func content(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	must(t, err)
	text, err := io.ReadAll(f)
	must(t, err)
	must(t, f.Close())
	return text
}

// opened opens the store, checks it, and returns what was logged and reported, and
// where what was given up ends.
func opened(t *testing.T, fs vfs.FS) (warnings, reports []string, end int64) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.New(core)})
	defer stop()
	s, err := e.Acquire(lostName)
	if err != nil {
		return nil, []string{err.Error()}, 0
	}
	defer e.Release(s)
	must(t, s.Check(context.Background(), func(problem string) { reports = append(reports, problem) }))
	if given := s.GivenUp(); given != nil {
		reports = append(reports, given.String())
		end = given.Offset + given.Bytes
	}
	for _, entry := range logs.All() {
		warnings = append(warnings, fmt.Sprint(entry.Message, entry.ContextMap()))
	}
	return warnings, reports, end
}

// TestEndOfLog: what opening a store gives up of its log is told; an end that
// gives up nothing is not.
func TestEndOfLog(t *testing.T) {
	fs, log := writtenLog(t)
	whole := content(t, fs, log)
	used := int64(len(whole)) // files in memory are not preallocated
	put := func(t *testing.T, text []byte) vfs.FS {
		t.Helper()
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		f, err := clone.Create(log, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(bytes.Clone(text)) // which may be overwritten
		must(t, err)
		must(t, f.Close())
		return clone
	}
	flipped := func(at int64) []byte {
		text := bytes.Clone(whole)
		text[at] ^= 0x13 // one bit would be set right
		return text
	}
	oneBit := bytes.Clone(whole)
	oneBit[used-400] ^= 4 // of what may have been cut off
	stale := append(bytes.Clone(whole[:used]), bytes.Repeat([]byte("what an earlier log left here "), 100)...)
	for name, text := range map[string][]byte{
		"killed": whole, "zeros": append(whole[:used:used], make([]byte, 100<<10)...), "recycled": stale,
	} {
		t.Run(name, func(t *testing.T) {
			if warnings, reports, _ := opened(t, put(t, text)); len(warnings) != 0 || len(reports) != 0 {
				t.Errorf("logged %q, reported %q", warnings, reports)
			}
		})
	}
	t.Run("cut off at a page", func(t *testing.T) {
		clone := put(t, whole[:used/4096*4096])
		warnings, reports, _ := opened(t, clone)
		if len(warnings) != 0 || len(reports) != 1 || !strings.HasSuffix(reports[0], "cut off, which nobody was told of") {
			t.Errorf("logged %q, reported %q", warnings, reports)
		}
		if warnings, reports, _ := opened(t, clone); len(warnings) != 0 || len(reports) != 0 {
			t.Errorf("later: logged %q, reported %q", warnings, reports)
		}
	})
	for name, text := range map[string][]byte{
		"last byte": flipped(used - 1), "a bit of the last batch": oneBit, "last batch": flipped(used - 500), "batch before": flipped(used - 1500), "first batch": flipped(500),
		"cut off": whole[:used-200], "recycled": func() []byte { s := bytes.Clone(stale); s[used-300] ^= 0x31; return s }(),
	} {
		t.Run("damaged: "+name, func(t *testing.T) {
			clone := put(t, text)
			warnings, reports, end := opened(t, clone)
			if len(reports) == 1 && strings.Contains(reports[0], "damaged") && len(warnings) == 0 {
				return // Pebble knows that more was synced
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "the end of a log was given up") || len(reports) != 1 ||
				!strings.Contains(reports[0], " of the log "+fs.PathBase(log)+" cannot be read and were given up") {
				t.Errorf("logged %q, reported %q", warnings, reports)
			}
			if end != min(used, int64(len(text))) {
				t.Errorf("%q end at %d of %d", reports, end, used)
			}
			if warnings, reports, _ := opened(t, clone); len(warnings) != 0 || len(reports) != 0 {
				t.Errorf("later: logged %q, reported %q", warnings, reports)
			}
		})
	}
}
