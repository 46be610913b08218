package reshard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/reshardtest"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const self = "a@host"

// town is a node with its part of a cluster, in a bubble.
type town struct {
	t      *testing.T
	group  *reshardtest.Group
	config *config.Holder
	r      *Resharder
	stop   func()
	old    atomic.Int64 // counts looks at directories

	mu    sync.Mutex
	dbs   []string
	done  []string                                     // what was done to copies, in order
	clone func(ctx context.Context, name string) error // before a range is cloned; nil: nothing
}

// newTown has databases of one shard each.
func newTown(t *testing.T, values map[string]string, dbs ...string) *town {
	t.Helper()
	h, err := config.New(config.Options{Flags: config.Values{"reshard": values}})
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, group: reshardtest.NewGroup(self), config: h, dbs: dbs}
	for _, name := range dbs {
		w.group.Create(name, ring.Full())
	}
	return w
}

// start runs the node until stop.
func (w *town) start() {
	w.t.Helper()
	r, err := New(Options{Node: self, Records: w.group, Map: w.group, Copies: w, Clones: w, Index: w.index, Config: w.config, Logger: zap.NewNop()})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	running.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				for _, db := range w.dbs {
					w.group.Settle(db)
				}
			}
		}
	})
	w.r = r
	w.stop = func() {
		cancel()
		running.Wait()
	}
}

// inTown runs a test in a bubble, with the node started.
func inTown(t *testing.T, values map[string]string, dbs []string, f func(w *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, values, dbs...)
		w.start()
		defer func() { w.stop() }()
		f(w)
	})
}

// ID implements Copies: what the map has is there after a moment.
func (w *town) ID(name string) (uint64, error) {
	_, db, _, _ := ring.ParseCopyName(name)
	if d, ok := w.group.Database(db); ok {
		if c, ok := d.Copy(name, self); ok && w.old.Add(1)%3 == 0 {
			return c.ID, nil
		}
	}
	return 7, nil // of a copy of before
}

// Has implements Copies.
func (w *town) Has(string) bool { return w.old.Add(1)%5 > 0 }

// Drop implements Copies.
func (w *town) Drop(_ context.Context, name string) error {
	w.note("drop " + name[7:24])
	return nil
}

// Range implements Clones.
func (w *town) Range(ctx context.Context, o shard.CloneOptions) (uint64, error) {
	w.mu.Lock()
	clone := w.clone
	w.done = append(w.done, "clone "+o.Source[7:24]+" "+o.Target[7:24])
	w.mu.Unlock()
	o.Progress(1, 2)
	if clone != nil {
		return 0, clone(ctx, o.Target)
	}
	return 1, nil
}

// LocalDocs implements Clones.
func (w *town) LocalDocs(_ context.Context, o shard.CloneOptions) error {
	w.note("locals " + o.Target[7:24])
	return nil
}

func (w *town) index(_ context.Context, _, copyName string) error {
	w.note("index " + copyName[7:24])
	return nil
}

func (w *town) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, what)
}

func (w *town) onClone(f func(ctx context.Context, name string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clone = f
}

// split makes a job for the only shard of a database.
func (w *town) split(name string) (id string, err error) {
	db, _ := w.group.Database(name)
	return w.splitOf(db, 0)
}

func (w *town) splitOf(db *meta.Database, shard int) (id string, err error) {
	source, err := SplitOf(db, db.Shards[shard].Range, db.Shards[shard].Copies[0])
	if err != nil {
		return "", err
	}
	return w.r.table.Create(w.t.Context(), source)
}

func (w *town) mustSplit(name string) string {
	w.t.Helper()
	id, err := w.split(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// pass lets time of the bubble pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// job returns a job as it is after d.
func (w *town) job(id string, d time.Duration) *job.Job {
	w.t.Helper()
	pass(d)
	j, err := w.r.table.Job(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// state is the state of a job and its step, after d.
func (w *town) state(id string, d time.Duration) string {
	w.t.Helper()
	j := w.job(id, d)
	return fmt.Sprintf("%s %s %s", j.State, j.Step, j.Reason)
}

// ranges are the copies of a database, after d.
func (w *town) ranges(name string, d time.Duration) string {
	pass(d)
	db, _ := w.group.Database(name)
	var out []string
	for _, s := range db.Shards {
		out = append(out, fmt.Sprintf("%s:%d", s.Range, s.Copies[0].State))
	}
	return strings.Join(out, " ")
}

// gone reports whether a job is not to be seen.
func (w *town) gone(id string) bool {
	_, err := w.r.table.Job(w.t.Context(), id)
	return fault.Is(err, fault.NotFound)
}
