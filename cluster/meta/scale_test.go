package meta

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta/raftlog"
	"divan/cluster/meta/voters"
	"divan/storage/fault"
)

// scaleDatabases is the variable of the environment that says with how many
// databases TestScale runs.
const scaleDatabases = "DIVAN_SCALE"

// tcp carries Raft over TCP on this machine; its addresses are names of nodes.
type tcp struct {
	net.Listener
	name string
	book *sync.Map // name → address

	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

// Accept remembers connections: the transport leaves them open at its end.
func (l *tcp) Accept() (net.Conn, error) {
	return l.keep(l.Listener.Accept())
}

func (l *tcp) keep(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	if l.dead {
		return nil, errors.Join(errors.New("the node is dead"), c.Close())
	}
	return c, nil
}

func (l *tcp) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.conns {
		_ = c.Close() // the other side may have been first
	}
}

func (l *tcp) Addr() net.Addr { return named(l.name) }

func (l *tcp) Dial(name raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	address, ok := l.book.Load(string(name))
	if !ok {
		return nil, errors.New("unknown node")
	}
	d := net.Dialer{Timeout: timeout}
	return l.keep(d.Dial("tcp", address.(string)))
}

type named string

func (n named) Network() string { return "name" }
func (n named) String() string  { return string(n) }

// diskCluster is nodes with their state on disk, that reach each other over TCP.
type diskCluster struct {
	t     *testing.T
	book  sync.Map // name → address
	metas sync.Map // name → *Meta
	seeds []string
}

// diskNode is a running node.
type diskNode struct {
	*Meta
	stop func()
	kill func() // cuts it off from all others at once
}

func (w *diskCluster) start(name, dir string) diskNode {
	w.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.book.Store(name, l.Addr().String())
	layer := &tcp{Listener: l, name: name, book: &w.book}
	transport := raft.NewNetworkTransportWithLogger(layer, 3, 10*time.Second, raftlog.New(zap.NewNop()))
	found := BootstrapPlan{New: len(w.seeds) == 0, Seeds: slices.Clone(w.seeds)}
	m, err := New(Options{
		Self: Node{Name: name}, Config: holder(w.t, config.Options{}), Dir: dir, Transport: transport,
		Found: func(context.Context) (BootstrapPlan, error) { return found, nil },
		Ask: func(ctx context.Context, to string, b []byte) ([]byte, error) {
			m, ok := w.metas.Load(to)
			if _, alive := w.metas.Load(name); !ok || !alive {
				return nil, unsent{}
			}
			return m.(*Meta).Answer(ctx, name, b)
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.metas.Store(name, m)
	w.seeds = append(w.seeds, name)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(w.t.Context()) }()
	stop := sync.OnceFunc(func() {
		if err := errors.Join(m.Close(), <-ended, transport.Close()); err != nil {
			w.t.Error(err)
		}
		layer.hangUp()
	})
	w.t.Cleanup(stop)
	if err := m.WaitReady(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return diskNode{m, stop, func() {
		w.metas.Delete(name)
		layer.hangUp()
	}}
}

// TestScale prints what many databases cost. DIVAN_SCALE=100000 runs it as
// the figures are promised; without it a small number shows that it works.
func TestScale(t *testing.T) {
	n := 300
	if text := os.Getenv(scaleDatabases); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	w := &diskCluster{t: t}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := make([]diskNode, 3)
	for i := range nodes {
		nodes[i] = w.start(fmt.Sprintf("divan@n%d.example.com", i), dirs[i])
	}
	before := heap()
	rate := createMany(t, nodes, n)
	t.Logf("%d databases created through 3 nodes: %.0f/s", n, rate)
	t.Logf("%d bytes of memory per database and node, log caches and all", (heap()-before)/int64(n*len(nodes)))

	begin := time.Now()
	nodes[2].stop()
	t.Logf("stopped in %v", time.Since(begin))
	begin = time.Now()
	nodes[2] = w.start(nodes[2].Self(), dirs[2])
	restart := time.Since(begin)
	t.Logf("ready after a restart in %v, with %d databases", restart, nodes[2].Databases().Len())

	begin = time.Now()
	late := w.start("divan@late.example.com", dirs[3])
	join := time.Since(begin)
	t.Logf("a joining node is ready in %v, with %d databases", join, late.Databases().Len())
	nodes = append(nodes, late)
	for _, m := range nodes {
		if err := m.CatchUp(t.Context()); err != nil || m.Databases().Len() != n {
			t.Errorf("%s has %d databases, %v", m.Self(), m.Databases().Len(), err)
		}
	}
	if os.Getenv(scaleDatabases) == "" {
		return // other tests look at fail-over, in a bubble
	}
	failover := failOver(t, nodes)
	t.Logf("a creation succeeds %v after the leader was cut off", failover)
	if rate < 500 || restart > 10*time.Second || join > 30*time.Second || failover > 2*time.Second {
		t.Error("too slow")
	}
}

// failOver cuts the leader off and returns how long no other node could decide.
func failOver(t *testing.T, nodes []diskNode) time.Duration {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for slices.ContainsFunc(nodes, func(n diskNode) bool { return len(n.Voters()) != voters.Target(len(nodes)) }) {
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("the nodes do not get their votes")
		}
	}
	leader := nodes[0].Leader()
	at := slices.IndexFunc(nodes, func(n diskNode) bool { return n.Self() == leader })
	begin := time.Now()
	nodes[at].kill()
	for i := 0; ; i++ {
		_, err := nodes[(at+1)%len(nodes)].CreateDatabase(t.Context(), Create{Name: fmt.Sprintf("after%d", i), Q: 2, N: 3})
		if err == nil {
			return time.Since(begin)
		}
		if !fault.Is(err, fault.Unavailable) || time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}

// createMany makes databases through all nodes, by 64 clients at once, and
// returns how many in a second.
func createMany(t *testing.T, nodes []diskNode, n int) float64 {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for c := range 64 {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				_, err := nodes[c%len(nodes)].CreateDatabase(t.Context(), Create{
					Name: fmt.Sprintf("userdb-%032x", i), Q: 2, N: 3,
					Security: []byte(`{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`),
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(begin).Seconds()
}
