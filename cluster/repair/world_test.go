package repair

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// world is a few nodes with their repair in one process; the calls from one to
// another go directly, past switches.
type world struct {
	t      *testing.T
	ctx    context.Context
	group  *meta.Meta
	config *config.Holder
	nodes  map[string]*member
	names  []string
	// answered is called when a message of a node was answered, before that node hears the answer;
	// nil: not called.
	answered atomic.Pointer[func(ctx context.Context, from string, request []byte)]

	mu   sync.Mutex
	subs map[int]sub
	last int
}

// sub is a subscriber that is told which nodes can be reached from one of them.
type sub struct {
	node string
	f    func(node string, up bool)
}

// member is a node of a world.
type member struct {
	*node
	world  *world
	repair *Repair
	end    func() // stops the repair
	down   atomic.Bool
	slow   atomic.Int64 // nanoseconds that each call to it and from it takes
	broken atomic.Pointer[func(call replica.Call) error]
}

// inWorld runs f in a bubble with that many nodes and a database "db" with a
// copy on each.
func inWorld(t *testing.T, n int, settings config.Values, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		holder, err := config.New(config.Options{Flags: settings})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, ctx: ctx, config: holder, nodes: map[string]*member{}, subs: map[int]sub{}}
		for i := range n {
			w.names = append(w.names, string(rune('a'+i))+"@x")
		}
		w.group, err = meta.New(meta.Options{Self: meta.Node{Name: w.names[0]}, Bootstrap: true, Config: holder})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		defer func() {
			for _, m := range w.nodes {
				m.stopRepair()
				m.stop()
			}
			cancel()
			running.Wait()
		}()
		running.Go(func() {
			if err := w.group.Run(ctx); err != nil {
				t.Errorf("metadata: %v", err)
			}
		})
		if err := w.group.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		for _, name := range w.names[1:] {
			if err := w.group.PutNode(ctx, meta.Node{Name: name, ClusterVersion: meta.ClusterVersion}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.group.CreateDatabase(ctx, meta.Create{Name: "db", Q: 1, N: n}); err != nil {
			t.Fatal(err)
		}
		for _, name := range w.names {
			m := &member{world: w, node: &node{t: t, name: name, fs: newFS(), copy: w.copyName()}}
			w.nodes[name] = m
			db, _ := w.group.Database("db")
			one, _ := db.Copy(m.copy, name)
			m.id = one.ID
			m.open()
			m.create(shard.CreateOptions{})
		}
		for _, name := range w.names {
			w.nodes[name].startRepair()
		}
		f(w)
	})
}

func (w *world) copyName() string {
	db, _ := w.group.Database("db")
	return db.CopyName(db.Shards[0].Range)
}

func (w *world) node(i int) *member { return w.nodes[w.names[i]] }

func (m *member) startRepair() {
	m.t.Helper()
	r, err := New(Options{
		Node: m.name, Meta: m.world.group, Local: m.Local, Own: m.held(), Peers: view{m.world, m.name}, Config: m.world.config,
		Ask: view{m.world, m.name}.ask, Logger: zaptest.NewLogger(m.world.t, zaptest.Level(zap.InfoLevel)).Named(m.name),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.world.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			m.t.Errorf("%s: %v", m.name, err)
		}
	}()
	m.repair = r
	m.end = func() {
		cancel()
		<-done
	}
	m.update = r.Updated
}

func (m *member) stopRepair() { m.end() }

// held is the copies of the node as calls find them.
func (m *member) held() *replica.Local {
	return replica.NewLocal(replica.Held{Shards: m.Local, Place: func(name string) ring.Replica {
		db, one, ok := m.world.group.CopyIn(name, m.name)
		if !ok {
			return ring.Replica{}
		}
		return ring.Replica{Copy: ring.Copy{ID: one.ID, State: one.State}, Generation: db.Generation}
	}})
}

// lose does what a node does whose copy is gone: the copy joins under a new id, and is made
// empty.
func (m *member) lose() {
	m.t.Helper()
	if err := m.Copies.Drop(m.world.ctx, m.copy); err != nil {
		m.t.Fatal(err)
	}
	m.make(m.join())
}

// join proposes that the copy of the node joins, and returns the id that it gets.
func (m *member) join() uint64 {
	m.t.Helper()
	db, was, _ := m.world.group.CopyIn(m.copy, m.name)
	joins := meta.CopyChange{Name: db.Name, ID: db.ID, Change: ring.Change{Copy: was.ID, To: ring.StateJoining}}
	if err := m.world.group.ChangeCopies(m.world.ctx, []meta.CopyChange{joins}); err != nil {
		m.t.Fatal(err)
	}
	now := m.inMap()
	if now.ID == was.ID || now.State != ring.StateJoining {
		m.t.Fatalf("%s: copy %d, %s, became %d, %s", m.name, was.ID, was.State, now.ID, now.State)
	}
	return now.ID
}

// make makes the copy with that id.
func (m *member) make(id uint64) {
	m.t.Helper()
	err := m.Copies.Create(m.world.ctx, m.copy, shard.CreateOptions{ID: id})
	for fault.Is(err, fault.Exists) { // a reader still has the copy that was dropped
		<-time.After(time.Millisecond)
		err = m.Copies.Create(m.world.ctx, m.copy, shard.CreateOptions{ID: id})
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// inMap returns what the map has of the copy of the node.
func (m *member) inMap() ring.Copy {
	_, one, _ := m.world.group.CopyIn(m.copy, m.name)
	return one
}

func (m *member) copyID() uint64 { return m.inMap().ID }

// joins reports whether the copy of the node is being filled.
func (m *member) joins() bool { return m.inMap().State == ring.StateJoining }

// restart ends a node and starts it again on its file system.
func (m *member) restart() {
	was := m.down.Load()
	m.setDown(true)
	m.stopRepair()
	synctest.Wait() // no goroutine is in the middle of a call
	m.stop()
	m.open()
	m.startRepair()
	m.setDown(was)
}

// setDown makes a node unreachable, or reachable again, and tells every subscriber.
func (m *member) setDown(down bool) {
	m.down.Store(down)
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	for _, s := range m.world.subs {
		if s.node != m.name {
			s.f(m.name, !down)
			continue
		}
		for name, other := range m.world.nodes {
			if name != m.name && !other.down.Load() {
				s.f(name, !down)
			}
		}
	}
}

// view is the other nodes as one of them sees them.
type view struct {
	w    *world
	self string
}

func (v view) Copies(node string) replica.Copies {
	m := v.w.nodes[node]
	if m == nil || m.down.Load() || v.w.nodes[v.self].down.Load() {
		return nil
	}
	return remote{m, v}
}

func (v view) Subscribe(f func(node string, up bool)) (cancel func()) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	v.w.last++
	id := v.w.last
	v.w.subs[id] = sub{v.self, f}
	return func() {
		v.w.mu.Lock()
		defer v.w.mu.Unlock()
		delete(v.w.subs, id)
	}
}

func (v view) ask(ctx context.Context, node, service string, request []byte) ([]byte, error) {
	m := v.w.nodes[node]
	if err := (remote{m, v}).pass(ctx, nil); err != nil {
		return nil, err
	}
	out, err := m.repair.Answer(ctx, v.self, request)
	if f := v.w.answered.Load(); f != nil {
		(*f)(ctx, v.self, request)
	}
	return out, err
}

// remote is the copies of a member as another one reaches them.
type remote struct {
	m *member
	v view
}

func (r remote) pass(ctx context.Context, call replica.Call) error {
	if r.m.down.Load() || r.v.w.nodes[r.v.self].down.Load() {
		return fault.Newf(fault.NodeDown, "Node %s cannot be reached.", r.m.name)
	}
	if f := r.m.broken.Load(); f != nil {
		if err := (*f)(call); err != nil {
			return err
		}
	}
	if d := time.Duration(max(r.m.slow.Load(), r.v.w.nodes[r.v.self].slow.Load())); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Do implements replica.Copies.
func (r remote) Do(ctx context.Context, c replica.Call) error {
	if err := r.pass(ctx, c); err != nil {
		return err
	}
	return c.On(ctx, r.m.held())
}

// wait lets bubble time pass.
func (w *world) wait(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
	synctest.Wait()
}

func (w *world) agree() {
	w.t.Helper()
	var all []*node
	for _, name := range w.names {
		all = append(all, w.nodes[name].node)
	}
	agree(w.t, all...)
}

func TestUpdatesArrive(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, b := w.node(0), w.node(1)
		w.wait(time.Minute)
		a.put("x", doc.Rev{}, `{"n":1}`)
		b.put("x", doc.Rev{}, `{"n":2}`)
		w.wait(4 * time.Second)
		if a.info().Seq != 1 || b.info().Seq != 1 {
			t.Error("pushed before the delay was over")
		}
		w.wait(2 * time.Second)
		w.agree()
		w.wait(20 * time.Second)
		if n := a.repair.Jobs() + b.repair.Jobs(); n != 0 {
			t.Errorf("%d pushes are left", n)
		}
	})
}

func TestHintsPushAtOnce(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.wait(time.Minute)
		a, b, c := w.node(0), w.node(1), w.node(2)
		a.update = nil // the update itself is not noticed
		a.put("x", doc.Rev{}, `{}`)
		a.repair.Missed(a.copy, b.name)
		w.wait(10 * time.Millisecond)
		if b.info().Seq != 1 {
			t.Error("a hint about another node's copy")
		}
		b.repair.Missed(a.copy, c.name)
		w.wait(10 * time.Millisecond)
		if c.info().Seq != 1 {
			t.Error("a second hint")
		}
		// The copy that lacks something is the hinting node's own.
		a.put("y", doc.Rev{}, `{}`)
		b.repair.Missed(a.copy, b.name)
		w.wait(10 * time.Millisecond)
		if b.info().Seq != 2 {
			t.Error("a hint about the node's own copy")
		}
	})
}

func TestNodeComesBack(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a, c := w.node(0), w.node(2)
		w.wait(time.Minute)
		c.setDown(true)
		for i := range 30 {
			a.put(string(rune('A'+i)), doc.Rev{}, `{}`)
		}
		w.wait(time.Hour)
		if lag := a.repair.Lag(w.ctx); lag != 30 {
			t.Errorf("lag %d", lag)
		}
		a.restart() // forgets what it knew
		w.wait(time.Minute)
		c.setDown(false)
		w.wait(time.Second)
		w.agree()
		if lag := a.repair.Lag(w.ctx); lag != 0 {
			t.Errorf("lag %d", lag)
		}
	})
}

// Neither updates nor hints nor returning nodes are needed.
func TestAntiEntropyFindsEverything(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a := w.node(0)
		w.wait(time.Minute)
		a.update = nil
		a.put("x", doc.Rev{}, `{}`)
		w.wait(2 * antiEntropyEvery)
		w.agree()
		a.put("y", doc.Rev{}, `{}`)
		if err := w.node(1).repair.Sync(w.ctx, []string{a.copy}); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Millisecond)
		w.agree()
	})
}

// The log of purges waits for a node that is away, also when the first purge
// comes long after the first push that did not reach it.
func TestPurgesAfterNodeWentAway(t *testing.T) {
	for name, leave := range map[string]func(w *world, a, b *member){
		"before the push": func(_ *world, a, b *member) {
			b.setDown(true)
			a.put("x", doc.Rev{}, `{}`)
		},
		"during the push": func(w *world, a, b *member) {
			gone := func(replica.Call) error { return fault.New(fault.NodeDown, "gone") }
			b.broken.Store(&gone)
			a.put("x", doc.Rev{}, `{}`)
			w.wait(6 * time.Second) // the delay of the push, and the push
			b.setDown(true)
			b.broken.Store(nil)
		},
	} {
		t.Run(name, func(t *testing.T) { purgesAfterNodeWentAway(t, leave) })
	}
}

func purgesAfterNodeWentAway(t *testing.T, leave func(w *world, a, b *member)) {
	t.Helper()
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.node(0), w.node(1)
		w.wait(time.Minute)
		var revs []doc.Rev
		for i := range 6 {
			revs = append(revs, a.put(string(rune('A'+i)), doc.Rev{}, `{}`))
		}
		w.wait(time.Minute)
		w.agree()
		leave(w, a, b)
		w.wait(10 * time.Minute)
		for i, r := range revs {
			a.purge(byte(i+1), string(rune('A'+i)), r)
		}
		if err := a.Compactions.Start(w.ctx, a.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
		w.wait(10 * time.Minute)
		if log, err := a.Purges(w.ctx, a.copy, 0); err != nil || len(log) != len(revs) {
			t.Errorf("%d purges are left: %v", len(log), err)
		}
		b.setDown(false)
		w.wait(time.Minute)
		w.agree()
		if got := a.showDoc("A"); got != "A" {
			t.Errorf("a purged document is %s", got)
		}
		if err := a.Compactions.Start(w.ctx, a.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		if log, err := a.Purges(w.ctx, a.copy, 0); err != nil || len(log) != 1 {
			t.Errorf("%d purges are left when all have them: %v", len(log), err)
		}
	})
}

// The log of purges waits for a node that is away, also when it was never seen,
// and a database that goes takes its pushes with it.
func TestAwayAndDeleted(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.node(0), w.node(1)
		b.setDown(true)
		w.wait(time.Minute)
		var revs []doc.Rev
		for i := range 8 {
			revs = append(revs, a.put(string(rune('A'+i)), doc.Rev{}, `{}`))
		}
		for i, r := range revs[:6] {
			a.purge(byte(i+1), string(rune('A'+i)), r)
		}
		w.wait(time.Minute)
		if err := a.Compactions.Start(w.ctx, a.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		if log, err := a.Purges(w.ctx, a.copy, 0); err != nil || len(log) != 6 {
			t.Errorf("%d purges are left: %v", len(log), err)
		}
		b.setDown(false)
		w.wait(time.Minute)
		w.agree()
		if err := a.Compactions.Start(w.ctx, a.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		if log, err := a.Purges(w.ctx, a.copy, 0); err != nil || len(log) != 1 {
			t.Errorf("%d purges are left when all have them: %v", len(log), err)
		}
		b.setDown(true)
		a.put("more", doc.Rev{}, `{}`)
		w.wait(time.Minute)
		if a.repair.Jobs() != 1 {
			t.Errorf("%d pushes wait", a.repair.Jobs())
		}
		if _, err := w.group.DeleteDatabase(w.ctx, "db"); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*member{a, b} {
			if err := m.Copies.Drop(w.ctx, m.copy); err != nil {
				t.Fatal(err)
			}
		}
		w.wait(2 * time.Minute)
		if a.repair.Jobs() != 0 {
			t.Errorf("%d pushes wait for a database that is gone", a.repair.Jobs())
		}
	})
}

func TestBandwidthIsBounded(t *testing.T) {
	inWorld(t, 2, config.Values{"mem3": {"sync_max_bytes_per_second": "100000"}}, func(w *world) {
		a, b := w.node(0), w.node(1)
		w.wait(time.Minute)
		b.setDown(true)
		large := content(1_000_000, 'x')
		a.put("d", doc.Rev{}, `{}`, a.attach("d", "large", 1, large))
		b.setDown(false)
		w.wait(9 * time.Second)
		if b.info().Seq != 0 {
			t.Error("a megabyte took less than 9 seconds")
		}
		if tasks := a.repair.Tasks(); len(tasks) != 1 || tasks[0].Bytes < 500_000 || tasks[0].To != 1 || tasks[0].Node != b.name {
			t.Errorf("tasks %+v", tasks)
		}
		w.wait(3 * time.Second)
		w.agree()
	})
}
