package repair

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/bandwidth"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/cluster/wire/simnet"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// overWire runs f in a bubble with two nodes, and the second one's copies as
// the first one reaches them through the network.
func overWire(t *testing.T, f func(a, b *node, peer methods, net *simnet.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		run := func(f func(context.Context) error) {
			running.Go(func() {
				if err := f(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		a, b := newNode(t, "a@10.0.0.1"), newNode(t, "b@10.0.0.2")
		defer b.stop()
		defer a.stop()
		defer running.Wait()
		defer cancel()
		net := simnet.New(1)
		var pools []*wire.Pool
		for _, n := range []*node{a, b} {
			ip := strings.TrimPrefix(n.name[1:], "@")
			host, err := net.Boot(ip)
			if err != nil {
				t.Fatal(err)
			}
			port, err := wire.NewPort(wire.PortOptions{
				Self: n.name, Network: host, Address: ip + ":5986",
				Secret: func() string { return "secret" },
				Resolve: func(name string) (string, bool) {
					_, host, ok := strings.Cut(name, "@")
					return host + ":5986", ok
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			run(port.Run)
			<-port.Listening()
			server := wire.NewServer(wire.ServerOptions{Operations: replica.NewLocal(replica.Held{Shards: n.Local}).Operations()})
			run(func(ctx context.Context) error { return server.Run(ctx, port) })
			pool := wire.NewPool(port, nil)
			run(pool.Run)
			pools = append(pools, pool)
		}
		synctest.Wait()
		f(a, b, methods{replica.On(pools[0].Peer(b.name))}, net)
	})
}

func TestPushOverTheWire(t *testing.T) {
	overWire(t, func(a, b *node, peer methods, _ *simnet.Network) {
		for i := range 300 {
			a.put(fmt.Sprint("d", i), doc.Rev{}, fmt.Sprintf(`{"n":%d}`, i))
		}
		r := a.put("att", doc.Rev{}, `{}`, a.attach("att", "large", 1, content(700_000, 'a')), a.attach("att", "small", 2, content(100, 'b')),
			a.attach("att", "none", 3, []byte{}))
		x := a.put("x", doc.Rev{}, `{}`)
		a.branch("x", doc.Rev{}, "other", `{}`)
		push := func() error {
			p := a.pushTo(b, peer)
			_, err := p.run(wire.ForRepair(context.Background()))
			return err
		}
		if err := push(); err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
		keep := shard.EditAttachment{Attachment: doc.Attachment{Name: "large"}, Stub: true}
		a.put("att", r, `{"n":2}`, keep, a.attach("att", "new", 4, content(100_000, 'c')))
		a.purge(1, "x", x)
		b.purge(2, "d0", revOf(b, "d0"))
		if err := push(); err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
		b.check()
		// A purge at the target of what is being pushed is noticed there, too.
		a.put("y", doc.Rev{}, `{}`)
		f := &meddling{Copies: peer, meddle: func() { b.purge(3, "y", x) }}
		if _, err := a.pushTo(b, f).run(context.Background()); !fault.Is(err, fault.Conflict) {
			t.Errorf("a push that did not see a purge: %v", err)
		}
	})
}

func revOf(n *node, id string) doc.Rev {
	n.t.Helper()
	d, err := n.Open(context.Background(), shard.OpenRequest{Copy: n.copy, ID: id})
	if err != nil {
		n.t.Fatal(err)
	}
	return d.Rev
}

// The network goes away in the middle of a large attachment, and comes back.
func TestNetworkFailsDuringPush(t *testing.T) {
	overWire(t, func(a, b *node, peer methods, net *simnet.Network) {
		a.put("att", doc.Rev{}, `{}`, a.attach("att", "large", 1, content(3_000_000, 'a')))
		started := time.Now()
		p := a.pushTo(b, peer)
		p.bandwidth = bandwidth.New(func() int64 { return 1_000_000 })
		done := make(chan error)
		go func() {
			_, err := p.run(wire.ForRepair(context.Background()))
			done <- err
		}()
		cut := time.NewTimer(time.Second)
		<-cut.C
		net.SetLink("10.0.0.1", "10.0.0.2", simnet.Link{Cut: true})
		net.SetLink("10.0.0.2", "10.0.0.1", simnet.Link{Cut: true})
		if err := <-done; !fault.Is(err, fault.NodeDown) {
			t.Errorf("the push ends with %v", err)
		}
		if took := time.Since(started); took > 15*time.Second {
			t.Errorf("the push ends after %v", took)
		}
		net.Heal()
		again := time.NewTimer(5 * time.Second)
		<-again.C
		if _, err := a.pushTo(b, peer).run(context.Background()); err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
		b.check()
	})
}
