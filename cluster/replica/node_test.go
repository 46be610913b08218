package replica

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/cluster/wire"
	"divan/cluster/wire/simnet"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/indexer"
	"divan/shard/view"
	"divan/storage"
	"divan/storage/fault"
)

const testCopy = "shards/00000000-ffffffff/db.1763600000"

// newLocal returns copies in memory, with one copy.
func newLocal(tb testing.TB) *Local {
	tb.Helper()
	fs := vfs.NewMem()
	e, err := storage.NewEngine(storage.Options{Dir: "/data", FS: fs, CacheBytes: 8 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	l := shard.New(shard.Options{Engine: e})
	if err := l.Copies.Create(context.Background(), testCopy, shard.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	scripts := script.New(script.Options{})
	indexes := index.New(index.Options{Engine: e, Shards: l})
	searches := search.New(indexes, indexer.New(scripts))
	views := view.New(view.Options{Indexes: indexes, Shards: l, Scripts: scripts})
	tb.Cleanup(func() {
		for _, c := range []func() error{indexes.Close, scripts.Close, l.Close, e.Close} {
			if err := c(); err != nil {
				tb.Error(err)
			}
		}
	})
	return NewLocal(Held{Shards: l, Indexes: indexes, Views: views, Searches: searches})
}

// testNode is a port with a server and a pool.
type testNode struct {
	name, address string
	network       wire.Network
	operations    wire.Operations
	stop          func() // may be called more than once
	cutOff        func() // nothing passes between it and others any more

	port *wire.Port
	pool *wire.Pool
}

// run starts the node; it ends with the test.
func (n *testNode) run(tb testing.TB, resolve func(node string) (string, bool)) {
	tb.Helper()
	var err error
	n.port, err = wire.NewPort(wire.PortOptions{
		Self: n.name, Network: n.network, Address: n.address, Secret: func() string { return "a secret" }, Resolve: resolve,
	})
	if err != nil {
		tb.Fatal(err)
	}
	n.port.Belong("")
	n.pool = wire.NewPool(n.port, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	server := wire.NewServer(wire.ServerOptions{Operations: n.operations})
	for _, part := range []func() error{
		func() error { return n.port.Run(ctx) },
		func() error { <-n.port.Listening(); return server.Run(ctx, n.port) },
		func() error { <-n.port.Listening(); return n.pool.Run(ctx) },
	} {
		wg.Go(func() {
			if err := part(); err != nil {
				tb.Error(err)
			}
		})
	}
	<-n.pool.Started()
	n.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	tb.Cleanup(n.stop)
}

// remote returns the copies of another node, once it answers.
func (n *testNode) remote(tb testing.TB, node string) Remote {
	tb.Helper()
	r := On(n.pool.Peer(node))
	for { // the server may only begin to listen
		_, err := Info.On(tb.Context(), Copy{At: r}, testCopy)
		if err == nil {
			return r
		}
		if !fault.Is(err, fault.NodeDown) {
			tb.Fatal(err)
		}
		runtime.Gosched()
	}
}

// remoteCopies returns copies, and the same as another node sees them.
func remoteCopies(t *testing.T) (*Local, Remote, *testNode) {
	t.Helper()
	local := newLocal(t)
	r, node := serve(t, local.Operations())
	return local, r, node
}

// serve has a node do operations for another one.
func serve(t *testing.T, o wire.Operations) (Remote, *testNode) {
	t.Helper()
	net := simnet.New(1)
	boot := func(name, ip string, o wire.Operations) *testNode {
		h, err := net.Boot(ip)
		if err != nil {
			t.Fatal(err)
		}
		n := &testNode{name: name, address: ip + ":1", network: h, operations: o}
		n.run(t, func(node string) (string, bool) {
			return map[string]string{"a@a": "10.0.0.1:1", "b@b": "10.0.0.2:1"}[node], true
		})
		return n
	}
	b := boot("b@b", "10.0.0.2", o)
	b.cutOff = func() {
		net.SetLink("10.0.0.1", "10.0.0.2", simnet.Link{Cut: true})
		net.SetLink("10.0.0.2", "10.0.0.1", simnet.Link{Cut: true})
	}
	synctest.Wait() // b listens
	a := boot("a@a", "10.0.0.1", wire.Operations{})
	return On(a.pool.Peer("b@b")), b
}
