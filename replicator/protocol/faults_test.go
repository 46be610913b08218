package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

var errCut = fault.New(fault.Unavailable, "the connection was cut")

// faults says which calls fail: each by its number, once.
type faults struct {
	mu    sync.Mutex
	calls int
	plan  map[int]bool // what is there is cut; true: after the work has been done
}

// next counts a call. before and after say where it is cut.
func (f *faults) next() (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	late, ok := f.plan[f.calls]
	switch {
	case !ok:
	case late:
		after = errCut
	default:
		before = errCut
	}
	return before, after
}

func (f *faults) call(work func() error) error {
	before, after := f.next()
	if before != nil {
		return before
	}
	return errors.Join(work(), after)
}

// weather is what happens to the calls that copy, and to the others.
type weather struct{ data, control *faults }

// unsure is a store behind a connection that breaks.
type unsure struct {
	*store
	weather
	opened func(since endpoint.Seq)
}

func (u unsure) Info(ctx context.Context) (i endpoint.Info, err error) {
	return i, u.control.call(func() (err error) { i, err = u.store.Info(ctx); return err })
}

func (u unsure) Local(ctx context.Context, id string) (body []byte, rev string, err error) {
	err = u.control.call(func() (err error) { body, rev, err = u.store.Local(ctx, id); return err })
	return body, rev, err
}

func (u unsure) PutLocal(ctx context.Context, id, rev string, body []byte) (put string, err error) {
	err = u.control.call(func() (err error) { put, err = u.store.PutLocal(ctx, id, rev, body); return err })
	return put, err
}

func (u unsure) Commit(ctx context.Context) (start string, err error) {
	err = u.control.call(func() (err error) { start, err = u.store.Commit(ctx); return err })
	return start, err
}

func (u unsure) Missing(ctx context.Context, ids []shard.IDRevs) (m []shard.IDMissing, err error) {
	err = u.data.call(func() (err error) { m, err = u.store.Missing(ctx, ids); return err })
	return m, err
}

func (u unsure) Write(ctx context.Context, docs []*endpoint.Doc) (r []endpoint.Refused, err error) {
	err = u.data.call(func() (err error) { r, err = u.store.Write(ctx, docs); return err })
	return r, err
}

func (u unsure) WriteWith(ctx context.Context, d *endpoint.Doc, c endpoint.Contents) error {
	return u.data.call(func() error { return u.store.WriteWith(ctx, d, c) })
}

func (u unsure) Changes(ctx context.Context, q endpoint.ChangesQuery) (f endpoint.Feed, err error) {
	u.opened(q.Since)
	err = u.control.call(func() (err error) { f, err = u.store.Changes(ctx, q); return err })
	return unsureFeed{f, u.control}, err
}

type unsureFeed struct {
	endpoint.Feed
	faults *faults
}

func (f unsureFeed) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	before, after := f.faults.next()
	if before != nil {
		return 0, before
	}
	n, err := f.Feed.Next(ctx, rows[:min(len(rows), 5)])
	if err == nil {
		err = after
	}
	return n, err
}

// Fetch may be cut before any document, and in the content of an attachment.
func (u unsure) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	return u.store.Fetch(ctx, o, wanted, func(d *endpoint.Doc, c endpoint.Contents) error {
		return u.data.call(func() error { return take(d, unsureContents{c, u.data}) })
	})
}

type unsureContents struct {
	endpoint.Contents
	faults *faults
}

func (c unsureContents) Next(ctx context.Context) (body io.ReadCloser, err error) {
	err = c.faults.call(func() (err error) { body, err = c.Contents.Next(ctx); return err })
	return body, err
}

// write makes one random change in a store.
func write(t *rapid.T, s *store) {
	id := rapid.SampledFrom([]string{"a", "b/c", "_design/d", "é", "e", "f"}).Draw(t, "id")
	leaves, number := s.look(id)
	parent := doc.Path{}
	var files []file
	if len(leaves) > 0 {
		leaf := rapid.SampledFrom(leaves).Draw(t, "leaf")
		parent = leaf.path
		for _, f := range leaf.atts {
			if rapid.Bool().Draw(t, "keep") {
				files = append(files, f)
			}
		}
	}
	for i := range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "files") {
		name := fmt.Sprint("n", number, "-", i)
		files = append(files, attachment(name, []byte(name+rapid.StringN(0, 200, -1).Draw(t, "content"))))
	}
	body := fmt.Sprintf(`{"n":%d}`, number)
	own := fmt.Sprint(s.name, number)
	switch kind := rapid.SampledFrom([]string{"edit", "edit", "edit", "delete", "root", "branch"}).Draw(t, "kind"); {
	case kind == "delete" && len(leaves) > 0:
		s.extend(id, parent.Rev(), true, body)
	case kind == "root":
		s.put(id, doc.Path{Start: 1, IDs: []string{own}}, false, body)
	case kind == "branch" && parent.Start > 1:
		s.put(id, doc.Path{Start: parent.Start, IDs: slices.Concat([]string{own}, parent.IDs[1:])}, false, body)
	default:
		s.extend(id, parent.Rev(), false, body, files...)
	}
}

// leaf is a leaf as a writer sees it.
type leaf struct {
	path doc.Path
	atts []file
}

// look returns the leaves of a document, and a number that the next change will
// not find again.
func (s *store) look(id string) (leaves []leaf, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.docs[id]; d != nil {
		for _, n := range d.tree.Leaves() {
			leaves = append(leaves, leaf{d.tree.Path(n.Rev, 0), d.content[n.Rev].atts})
		}
	}
	return leaves, s.seq
}

// journey is a replication that is begun again until it is done.
type journey struct {
	t      *rapid.T
	source *store
	target *store
	spec   func() Options
	known  uint64 // behind the newest checkpoint that both sides have
}

func newJourney(t *rapid.T, source, target *store, f weather, continuous bool) *journey {
	j := &journey{t: t, source: source, target: target}
	s := request()
	s.Continuous = continuous
	s.BatchSize = rapid.IntRange(1, 7).Draw(t, "batch")
	s.Workers = rapid.IntRange(1, 4).Draw(t, "workers")
	s.CheckpointInterval = time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval")) * time.Millisecond
	s.Source.URL, s.Target.URL = "http://x/"+source.name+"/", "http://x/"+target.name+"/"
	id := s.ID("uuid", "").Base
	opened := func(since endpoint.Seq) {
		if leading(since) < j.known {
			t.Errorf("changes are read from %s, the last checkpoint was at %d", since, j.known)
		}
	}
	from, to := unsure{source, f, opened}, unsure{target, f, opened}
	j.spec = func() Options {
		o := options(from, to, s)
		o.Logger = zap.NewNop()
		// A checkpoint counts once both sides have it: look before the next one.
		look := func() {
			a, b := answer(source.peek(id)), answer(target.peek(id))
			if a != nil && b != nil && a.at("session_id") == b.at("session_id") {
				j.known = max(j.known, leading(earlier(endpoint.Seq(a.at("source_last_seq")), endpoint.Seq(b.at("source_last_seq")))))
			}
		}
		look()
		o.Fence = func(context.Context) error {
			look()
			before, _ := f.control.next()
			return before
		}
		return o
	}
	return j
}

func (s *store) peek(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local[id].body
}

// finish runs until a run has come to its end; ctx ends a continuous one.
func (j *journey) finish(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := Run(ctx, j.spec())
		if err == nil {
			return
		}
		if !errors.Is(err, errCut) && ctx.Err() == nil {
			j.t.Errorf("a run failed: %v", err)
			return
		}
	}
}

func drawWeather(t *rapid.T) weather { return weather{drawFaults(t), drawFaults(t)} }

// drawFaults makes up outages of some calls each.
func drawFaults(t *rapid.T) *faults {
	f := &faults{plan: map[int]bool{}}
	for range rapid.IntRange(0, 15).Draw(t, "outages") {
		from := rapid.IntRange(1, 200).Draw(t, "from")
		for n := range rapid.IntRange(1, 12).Draw(t, "long") {
			f.plan[from+n] = n%2 == 1 || rapid.Bool().Draw(t, "late")
		}
	}
	return f
}

// For any documents and any faults, both sides hold the same leaves in the end.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(noDeadline{t}, func(t *rapid.T) {
			a, b := newStore("a"), newStore("b")
			f := drawWeather(t)
			there, back := newJourney(t, a, b, f, false), newJourney(t, b, a, f, false)
			for range rapid.IntRange(1, 3).Draw(t, "rounds") {
				for range rapid.IntRange(0, 15).Draw(t, "edits") {
					write(t, rapid.SampledFrom([]*store{a, b}).Draw(t, "side"))
				}
				there.finish(context.Background())
				back.finish(context.Background())
				if x, y := a.leaves(), b.leaves(); x != y {
					t.Fatalf("a:\n%s\nb:\n%s", x, y)
				}
			}
			// Another run finds nothing to do.
			f.data.plan, f.control.plan = nil, nil
			there.finish(context.Background())
			asked := b.checked
			there.finish(context.Background())
			if b.checked != asked {
				t.Errorf("%d revisions were checked again", b.checked-asked)
			}
		})
	})
}

// The same while both sides are written and replicate both ways.
func TestFaultsContinuous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(noDeadline{t}, func(t *rapid.T) {
			a, b := newStore("a"), newStore("b")
			f := drawWeather(t)
			there, back := newJourney(t, a, b, f, true), newJourney(t, b, a, f, true)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var both sync.WaitGroup
			both.Go(func() { there.finish(ctx) })
			both.Go(func() { back.finish(ctx) })
			for range rapid.IntRange(1, 30).Draw(t, "edits") {
				write(t, rapid.SampledFrom([]*store{a, b}).Draw(t, "side"))
				if rapid.Bool().Draw(t, "wait") {
					synctest.Wait()
				}
			}
			time.Sleep(5 * time.Minute)
			cancel()
			both.Wait()
			if x, y := a.leaves(), b.leaves(); x != y {
				t.Fatalf("a:\n%s\nb:\n%s", x, y)
			}
		})
	})
}

// noDeadline is a test without the method Deadline: there is no deadline in a bubble.
type noDeadline struct{ testing.TB }
