package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// killsVariable says how many times TestKill kills the program.
const killsVariable = "DIVAN_KILLS"

// killsPerDirectory is how many deaths one data directory sees in a row.
const killsPerDirectory = 4

// TestKill kills the program with SIGKILL at random moments under load, starts it again
// and looks whether everything that was acknowledged, or shown to any client, is there.
// After a graceful stop every invariant of the directory must hold.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 2
	if testing.Short() {
		kills = 1
	}
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for kills > 0 {
		seed := rand.Uint64()
		deaths := min(kills, killsPerDirectory)
		kills -= deaths
		ok := t.Run(fmt.Sprintf("seed=%x", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range deaths {
				w.live()
				w.die()
			}
			w.bury()
		})
		if !ok {
			return
		}
	}
}

// world is what the clients of one data directory know.
type world struct {
	t    *testing.T
	dir  string
	seed uint64
	rng  *rand.Rand

	process *process
	client  *client
	dead    atomic.Bool // killed: errors are to be expected from now on
	acks    atomic.Int64
	enough  int64         // acknowledgements until the kill
	reached chan struct{} // closed when there are enough

	mu        sync.Mutex
	docs      map[string]*tracked // by database/id
	registers []*register
	databases []*toggled
	sightings []*sighting
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), docs: map[string]*tracked{},
	}
	for _, path := range []string{
		"/one/_local/counter", "/three/_local/counter", "/one/_revs_limit", "/three/_purged_infos_limit",
		"/one/_security", "/_node/_local/_config/kill/counter",
	} {
		w.registers = append(w.registers, &register{path: path})
	}
	for i := range 2 {
		w.databases = append(w.databases, &toggled{name: fmt.Sprintf("toggled%d", i)})
	}
	w.begin()
	w.client.want(t, "PUT", "/one?q=1", "", 201)
	w.client.want(t, "PUT", "/three?q=3", "", 201)
	return w
}

// begin starts the program.
func (w *world) begin() {
	w.t.Helper()
	w.process = startServer(w.t, adminEnviron(), "--data", w.dir)
	w.client = newClient(w.t, w.process.address)
	w.dead.Store(false)
}

// live loads the program and kills it at some moment.
func (w *world) live() {
	w.t.Helper()
	w.acks.Store(0)
	w.enough = 1 + w.rng.Int64N(800)
	w.reached = make(chan struct{})
	var clients sync.WaitGroup
	for i, work := range w.workers() {
		rng := rand.New(rand.NewPCG(w.seed, w.rng.Uint64()))
		clients.Go(func() {
			for round := 0; !w.dead.Load(); round++ {
				if err := work(rng); err != nil {
					if !w.dead.Load() {
						w.t.Errorf("client %d: %v", i, err)
					}
					return
				}
			}
		})
	}
	select {
	case <-w.reached:
	case <-w.process.ended:
		w.t.Errorf("the program ended by itself\n%s", w.process.output())
	case <-time.After(patience):
		w.t.Errorf("only %d acknowledgements in time", w.acks.Load())
	}
	w.dead.Store(true)
	w.process.kill()
	clients.Wait()
	<-w.process.ended
	w.client.http.CloseIdleConnections()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// workers are the clients. Each document, database and register belongs to one
// of them, so that what it must be is known.
func (w *world) workers() []func(rng *rand.Rand) error {
	out := []func(rng *rand.Rand) error{
		w.writer("a"), w.writer("b"), w.bulker("c"), w.bulker("d"), w.attacher("e"), w.attacher("f"),
		w.purger("g"), w.replicator("h"), w.compact,
		w.follower("one", "continuous"), w.follower("three", "continuous"), w.follower("one", "longpoll"), w.follower("three", "longpoll"),
	}
	for _, d := range w.databases {
		out = append(out, d.worker(w))
	}
	return append(out, func(rng *rand.Rand) error {
		return w.registers[rng.IntN(len(w.registers))].write(w)
	})
}

// die starts the program again, sometimes killing it while it recovers, and
// verifies what it knows.
func (w *world) die() {
	w.t.Helper()
	for range w.rng.IntN(3) {
		p := launch(w.t, adminEnviron(), "--data", w.dir, "--listen", "127.0.0.1:0")
		select {
		case <-time.After(time.Duration(w.rng.IntN(60)) * time.Millisecond):
		case <-p.ended:
			w.t.Fatalf("the program does not start\n%s", p.output())
		}
		p.kill()
		<-p.ended
	}
	w.begin()
	w.verify()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// bury stops the program gracefully and examines the directory.
func (w *world) bury() {
	w.t.Helper()
	w.client.http.CloseIdleConnections()
	w.process.stop()
	checkDirectory(w.t, w.dir)
}

// ack notes that something was acknowledged.
func (w *world) ack() {
	if w.acks.Add(1) == w.enough {
		close(w.reached)
	}
}

// content is an attachment that follows from its number.
type content struct {
	seed uint64
	size int
	text bool // of a type that is stored compressed
}

func (c content) bytes() []byte {
	if !c.text {
		return incompressible(c.seed, c.size)
	}
	out := make([]byte, 0, c.size+20)
	for n := c.seed; len(out) < c.size; n++ {
		out = strconv.AppendUint(append(out, "line "...), n, 10)
	}
	return out[:c.size]
}

func (c content) mediaType() string {
	if c.text {
		return "text/plain"
	}
	return "image/png"
}

// state is what a document is at one moment.
type state struct {
	rev     string // empty while no client was told
	n       int    // in the body
	deleted bool
	purged  bool // or never written
	atts    map[string]content
}

// tracked is a document with one writer.
type tracked struct {
	db, id string
	revs   []string // acknowledged and not purged
	gone   []string // acknowledged as purged
	state  state    // as acknowledged
	// pending is what the request under way makes of it. After a kill the
	// document may be either.
	pending *state
	// branches are the leaves of a document that is only replicated to, with
	// the number in each body.
	branches map[string]int
}

func (d *tracked) path() string { return "/" + d.db + "/" + d.id }

// document returns the document of a worker, made when there is none.
func (w *world) document(db, id string) *tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.docs[db+"/"+id]
	if d == nil {
		d = &tracked{db: db, id: id, state: state{purged: true}}
		w.docs[db+"/"+id] = d
	}
	return d
}

// settle notes that the request under way was acknowledged. An empty rev is
// for a purge.
func (d *tracked) settle(rev string) {
	d.state, d.pending = *d.pending, nil
	d.state.rev = rev
	if rev != "" {
		d.revs = append(d.revs, rev)
		return
	}
	d.gone = append(d.gone, d.revs...)
	d.revs = nil
}
