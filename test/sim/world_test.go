package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/cluster/wire/simnet"
	"divan/cmd/divan/node"
	"divan/storage/storagetest"
	"divan/test/sim/history"
	"divan/test/sim/workload"
)

const (
	dataDir     = "data"
	httpPort    = "5984"
	clusterPort = "5986"
	admin       = "adm"
	password    = "pass"
)

// world is one cluster with its network, its disks and its clients.
type world struct {
	t     *testing.T
	plan  plan
	rng   *rand.Rand
	net   *simnet.Network
	log   history.Log
	zap   *zap.Logger
	start time.Time

	machines []*machine
	client   *simnet.Host
	http     *http.Client
	nodes    sync.WaitGroup // nodes that run, also those that do so unheard
	splits   sync.WaitGroup // requests for splits that are under way
	active   map[int]bool   // faults

	converged time.Duration // when all copies were the same, last

	mu struct {
		sync.Mutex
		up []workload.Target
	}
}

// machine is where a node runs, again and again.
type machine struct {
	name string
	ip   string
	disk storagetest.CrashFS
	kept storagetest.CrashFS // as it was when its copies were lost
	meta *raftDisk
	lost bool // for good
	*run      // the latest; nil before the first
}

// run is a node from its start to its end.
type run struct {
	host   *simnet.Host
	node   *node.Node
	cancel context.CancelFunc
	dead   atomic.Bool   // it was ended from outside
	ended  chan struct{} // closed when the node has ended
	err    error         // why, once it has
}

func (w *world) clock() time.Duration { return time.Since(w.start) }

// wrong notes a violation that shows at once.
func (w *world) wrong(format string, args ...any) {
	text := fmt.Sprintf("at %v: %s", w.clock(), fmt.Sprintf(format, args...))
	w.log.Note(func(h *history.History) { h.Wrong = append(h.Wrong, text) })
}

func newWorld(t *testing.T, p plan, log *zap.Logger) *world {
	t.Helper()
	w := &world{t: t, plan: p, rng: rand.New(rand.NewPCG(p.seed, 2)), net: simnet.New(p.seed), zap: log, start: time.Now(), active: map[int]bool{}}
	w.net.SetStandard(p.standard)
	for range p.nodes {
		w.addMachine()
	}
	var err error
	if w.client, err = w.net.Boot("10.0.1.1"); err != nil {
		t.Fatal(err)
	}
	w.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return w.client.Dial(ctx, address) },
	}}
	return w
}

// addMachine adds an empty machine and returns it.
func (w *world) addMachine() *machine {
	ip := fmt.Sprintf("10.0.0.%d", len(w.machines)+1)
	m := &machine{name: fmt.Sprintf("n%d@%s", len(w.machines)+1, ip), ip: ip, disk: storagetest.NewCrashFS(), meta: newRaftDisk()}
	w.machines = append(w.machines, m)
	return m
}

func (w *world) seeds() string {
	var out []string
	for _, m := range w.machines[:3] {
		out = append(out, m.name)
	}
	return strings.Join(out, ",")
}

// boot starts the node of a machine on what its disk holds. It returns when
// the node runs; it may not be ready yet.
func (w *world) boot(m *machine) error {
	host, err := w.net.Boot(m.ip)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{host: host, cancel: cancel, ended: make(chan struct{})}
	if r.node, err = w.build(ctx, m, host); err != nil {
		cancel()
		host.Kill()
		return err
	}
	m.run = r
	w.nodes.Go(func() {
		defer close(r.ended)
		r.err = r.node.Run(ctx)
	})
	return nil
}

func (w *world) build(ctx context.Context, m *machine, host *simnet.Host) (*node.Node, error) {
	listener, err := host.Listen(ctx, m.ip+":"+httpPort)
	if err != nil {
		return nil, err
	}
	return node.New(ctx, node.Config{
		DataDir: dataDir, FS: m.disk, Listener: listener, Network: host, Meta: m.meta.stores(),
		NodeName: m.name, ClusterAddress: m.ip + ":" + clusterPort, Version: "sim", Logger: w.zap.Named(m.name),
		Environ: []string{
			"DIVAN_CHTTPD_AUTH__ITERATIONS=1", "COUCHDB_USER=" + admin, "COUCHDB_PASSWORD=" + password,
			"DIVAN_CLUSTER__SEEDLIST=" + w.seeds(), "DIVAN_CLUSTER__SECRET=simulated-and-long",
		},
	})
}

// patience is how long a node may take to be ready, and a cluster to form.
const patience = 90 * time.Second

// ready waits until the node answers requests. It returns false when the node
// was told to end first.
func (r *run) ready() (bool, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-r.node.Ready():
		return true, nil
	case <-r.ended:
		if r.dead.Load() {
			return false, nil
		}
		return false, fmt.Errorf("it ended: %w", r.err)
	case <-limit.C:
		return false, fmt.Errorf("it is not ready after %v", patience)
	}
}

// stop ends a node gracefully.
func (w *world) stop(m *machine) {
	w.setUp(m, false)
	m.dead.Store(true)
	m.cancel()
	<-m.ended
	if m.err != nil && !errors.Is(m.err, context.Canceled) {
		w.wrong("%s stopped with: %v", m.name, m.err)
	}
	m.host.Kill()
}

// crash ends a node between two instructions. Its later actions reach no other node, and
// no disk that is read again.
func (w *world) crash(m *machine, silent bool, unsynced int) {
	w.setUp(m, false)
	m.dead.Store(true)
	if silent {
		m.host.PowerOff()
	} else {
		m.host.Kill()
	}
	m.meta = m.meta.clone()
	m.disk = m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: w.rng})
	m.cancel()
}

// wipe removes the copies of a node that is down.
func (w *world) wipe(m *machine) {
	m.kept = m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: w.rng})
	if err := m.disk.RemoveAll(m.disk.PathJoin(dataDir, "shards")); err != nil {
		w.wrong("%v", err)
	}
	w.lose()
}

// bringBack gives a node that is down the copies that it had when they were lost, in the
// place of those that it has.
func (w *world) bringBack(m *machine) {
	kept, shards := m.kept, m.disk.PathJoin(dataDir, "shards")
	w.wipe(m)
	if _, err := vfs.Clone(kept, m.disk, shards, shards, vfs.CloneSync); err != nil {
		w.wrong("%v", err)
	}
}

// lose notes that a disk was lost now.
func (w *world) lose() {
	w.log.Note(func(h *history.History) {
		h.Losses = append(h.Losses, history.Span{Call: w.converged, Return: w.clock()})
	})
}

// setUp says whether clients ask a node.
func (w *world) setUp(m *machine, up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.up = slices.DeleteFunc(w.mu.up, func(t workload.Target) bool { return t.Name == m.name })
	if up {
		w.mu.up = append(w.mu.up, m.target())
	}
}

// targets returns the nodes to ask: those that are up, else all.
func (w *world) targets() []workload.Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.up) > 0 {
		return slices.Clone(w.mu.up)
	}
	var all []workload.Target
	for _, m := range w.machines {
		all = append(all, m.target())
	}
	return all
}

// begin and end carry out one moment of the plan. Links are all made anew.
func (w *world) begin(i int) {
	f := w.plan.faults[i]
	w.zap.Info("fault begins", zap.Stringer("fault", f))
	w.active[i] = true
	w.connect()
	for _, n := range f.nodes {
		m := w.machines[n]
		switch f.kind {
		case crash, powerCut:
			w.crash(m, f.kind == powerCut, f.unsyncedPc)
		case wipe:
			w.crash(m, false, f.unsyncedPc)
			w.wipe(m)
		case comeback:
			w.crash(m, false, f.unsyncedPc)
			w.bringBack(m)
		case stop:
			w.stop(m)
		case maintain:
			w.maintenance(m, "true")
		case partition, oneWay, slow, lossy, kinds:
		}
	}
}

func (w *world) end(i int) {
	f := w.plan.faults[i]
	w.zap.Info("fault ends", zap.Stringer("fault", f))
	delete(w.active, i)
	w.connect()
	for _, n := range f.nodes {
		m := w.machines[n]
		switch f.kind {
		case crash, powerCut, wipe, comeback, stop:
			w.restart(m)
		case maintain:
			w.maintenance(m, "false")
		case partition, oneWay, slow, lossy, kinds:
		}
	}
}

// restart starts a node whose clients may ask it once it is ready.
func (w *world) restart(m *machine) {
	if err := w.boot(m); err != nil {
		w.wrong("%s does not start: %v", m.name, err)
		return
	}
	r := m.run
	w.nodes.Go(func() {
		ready, err := r.ready()
		if err != nil {
			w.wrong("%s does not start: %v", m.name, err)
		}
		if ready {
			w.setUp(m, true)
		}
	})
}

// grow lets one more node join.
func (w *world) grow() {
	w.zap.Info("one more node")
	w.restart(w.addMachine())
}

// replace loses a node for good and has a new one take its place.
func (w *world) replace() {
	present := w.present()
	old := present[w.rng.IntN(len(present))]
	w.zap.Info("a node is lost", zap.String("node", old.name))
	w.crash(old, w.rng.IntN(2) == 0, 0)
	old.lost = true
	w.lose()
	by := w.addMachine()
	if err := w.boot(by); err != nil {
		w.wrong("%s does not start: %v", by.name, err)
		return
	}
	helper := w.present()[0]
	err := w.until(patience, func() error {
		var members struct {
			Cluster []string `json:"cluster_nodes"`
		}
		if err := w.ask(helper, "/_membership", &members); err != nil {
			return err
		}
		if !slices.Contains(members.Cluster, by.name) {
			return fmt.Errorf("%s has not joined %v", by.name, members.Cluster)
		}
		return nil
	})
	if oneByOne := w.rng.IntN(2) == 0; err == nil && (!oneByOne || !w.spread(helper, old)) {
		err = w.takeOver(helper, old, by)
	}
	if err != nil {
		w.wrong("%s cannot take the place of %s: %v", by.name, old.name, err)
		return
	}
	w.setUp(by, true)
}

// takeOver has a node take the place of one that is lost. A database that was
// being created when that one went may have complete copies nowhere: what only
// the lost disk had is given up then, as lose has noted.
func (w *world) takeOver(helper, old, by *machine) error {
	path := "/_node/_local/_nodes/" + by.name
	err := w.until(settling, func() error {
		return w.put(helper, path, fmt.Sprintf(`{"replaces":%q}`, old.name))
	})
	if err == nil {
		return nil
	}
	w.zap.Info("by force", zap.Error(err))
	return w.until(patience, func() error {
		return w.put(helper, path, fmt.Sprintf(`{"replaces":%q,"force":true}`, old.name))
	})
}

// awaitVotes notes when all nodes have a vote. It gives up when the plan is over.
func (w *world) awaitVotes() {
	for ; w.clock() < w.plan.length; <-time.After(time.Second / 4) {
		var system struct {
			Metadata struct {
				Voters []string `json:"voters"`
			} `json:"metadata"`
		}
		asked := w.clock()
		err := w.ask(w.machines[0], "/_node/_local/_system", &system)
		if err == nil && len(system.Metadata.Voters) >= w.plan.nodes {
			w.log.Note(func(h *history.History) { h.Voting = asked })
			return
		}
	}
}

// present returns the machines that were not lost for good.
func (w *world) present() []*machine {
	return slices.DeleteFunc(slices.Clone(w.machines), func(m *machine) bool { return m.lost })
}

// maintenance sets or ends the maintenance mode of a node, as far as that can
// be reached.
func (w *world) maintenance(m *machine, mode string) {
	m.node.Config().SetVolatile("couchdb", "maintenance_mode", mode)
}

// connect sets every link as the active faults say.
func (w *world) connect() {
	w.net.Heal()
	for _, i := range slices.Sorted(maps.Keys(w.active)) {
		f := w.plan.faults[i]
		for a := range w.machines {
			for b := range w.machines {
				if slices.Contains(f.nodes, a) || !slices.Contains(f.nodes, b) {
					continue
				}
				out, in := w.machines[b].ip, w.machines[a].ip // b is what the fault is about
				switch f.kind {
				case partition:
					w.net.SetLink(out, in, simnet.Link{Cut: true})
					w.net.SetLink(in, out, simnet.Link{Cut: true})
				case oneWay:
					w.net.SetLink(in, out, simnet.Link{Cut: true})
				case slow, lossy:
					w.net.SetLink(out, in, f.link)
					w.net.SetLink(in, out, f.link)
				case crash, powerCut, wipe, comeback, stop, maintain, kinds:
				}
			}
		}
	}
}
