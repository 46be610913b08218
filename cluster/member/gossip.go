// Package member knows which nodes are here: they gossip with each other
// (hashicorp/memberlist) about who is alive, where to find it and how busy it
// is. What it says is an opinion of the moment, good for failing fast and for
// choosing; who belongs to the cluster is decided in package meta.
//
// Gossip is encrypted with a key derived from the cluster's secret, so a node
// with another secret neither hears nor is heard.
//
// Goroutines: Run starts those that take packets and streams from the network
// and the one that calls nodes that are down, and waits for them. Those that
// hashicorp/memberlist starts are told to end when Run returns; one that is in
// the middle of probing a node ends when its timer does, seconds later.
package member

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"
)

// Streams is the part of the cluster port that gossip needs besides packets.
type Streams interface {
	// Accept waits for another node; it returns an error after Close.
	Accept() (net.Conn, error)
	// Dial connects to the gossip of the node at host:port.
	Dial(ctx context.Context, address string) (net.Conn, error)
	// Close ends Accept.
	Close() error
}

// Packets opens the socket for packets; wire.Network does.
type Packets interface {
	ListenPacket(ctx context.Context, address string) (net.PacketConn, error)
}

// Options configures a Gossip. All but NodeDownAfter and Logger are required.
type Options struct {
	Self    string
	Secret  string        // of the cluster
	Info    func() Info   // what this node says about itself; asked at the start and by Refresh
	Packets Packets       // where to listen for packets
	Address func() string // host:port of that, the same as that of Streams; asked when Run begins
	Streams Streams

	// Known returns the nodes that should be here by name, with the addresses
	// of their cluster ports. Those that are not are called again and again.
	Known func() map[string]string

	// NodeDownAfter is how long a node may be silent; 0: the usual.
	NodeDownAfter time.Duration

	Logger *zap.Logger
}

// Member is a node that is here.
type Member struct {
	Name string
	Info
}

// Gossip is one node's part in the talk.
type Gossip struct {
	opts Options
	log  *zap.Logger

	mu struct {
		sync.Mutex
		list    *memberlist.Memberlist // nil unless Run is at work
		members map[string]Info        // of those that are here, without this node
		last    map[string]string      // addresses of all nodes that ever were here
		subs    map[int]func(node string, up bool)
		nextID  int
		left    bool
	}
}

// Times of the protocol.
const (
	probeInterval  = time.Second // each node looks after one other that often
	probeTimeout   = 500 * time.Millisecond
	gossipInterval = 200 * time.Millisecond
	streamTimeout  = 5 * time.Second
	pushPull       = 10 * time.Second // exchange of everything with one other node
	rejoinInterval = 2 * time.Second  // of nodes that should be here and are not
	leaveTimeout   = time.Second
)

// New returns a Gossip that is silent before Run.
func New(o Options) (*Gossip, error) {
	switch {
	case o.Self == "":
		return nil, errors.New("gossip: a node needs a name")
	case o.Secret == "":
		return nil, errors.New("gossip: no secret")
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	g := &Gossip{opts: o, log: o.Logger}
	g.mu.members = map[string]Info{}
	g.mu.last = map[string]string{}
	g.mu.subs = map[int]func(string, bool){}
	return g, nil
}

// gossipKey derives the key of the gossip from the cluster's secret.
func gossipKey(secret string) ([]byte, error) {
	k, err := hkdf.Key(sha256.New, []byte(secret), nil, "divan gossip", 32)
	if err != nil {
		return nil, fmt.Errorf("gossip: derive a key: %w", err)
	}
	return k, nil
}

// Run takes part until ctx ends. It returns an error when it cannot listen.
func (g *Gossip) Run(ctx context.Context) error {
	conf, err := g.settings()
	if err != nil {
		return err
	}
	socket, err := g.opts.Packets.ListenPacket(ctx, g.opts.Address())
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	t := newTransport(ctx, g.opts.Self, socket, g.opts.Streams, g.Address)
	defer t.wait()
	conf.Transport = t
	list, err := memberlist.Create(conf)
	if err != nil {
		return errors.Join(fmt.Errorf("gossip: %w", err), t.Shutdown())
	}
	g.mu.Lock()
	g.mu.list = list
	g.mu.Unlock()
	var calls sync.WaitGroup
	calls.Go(func() { g.rejoin(ctx, list) })
	<-ctx.Done()
	g.mu.Lock()
	g.mu.list = nil
	g.mu.Unlock()
	err = list.Shutdown()
	calls.Wait()
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	return nil
}

func (g *Gossip) settings() (*memberlist.Config, error) {
	k, err := gossipKey(g.opts.Secret)
	if err != nil {
		return nil, err
	}
	c := memberlist.DefaultLANConfig()
	c.Name, c.SecretKey, c.RequireNodeNames = g.opts.Self, k, true
	c.ProbeInterval, c.GossipInterval = max(probeInterval, g.opts.NodeDownAfter), gossipInterval
	c.ProbeTimeout = max(probeTimeout, g.opts.NodeDownAfter/2)
	c.TCPTimeout, c.PushPullInterval = streamTimeout, pushPull
	c.Delegate, c.Events = delegate{g}, eventDelegate{g}
	c.EnableCompression = false // of every packet, most of which hold a hundred bytes
	c.Logger = newLogger(g.log)
	return c, nil
}

// rejoin calls the nodes that should be here and are not, until ctx ends: at the
// start that is how this node comes in, later how the parts of a network that
// was divided find each other again.
func (g *Gossip) rejoin(ctx context.Context, list *memberlist.Memberlist) {
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for _, name := range g.down() {
			calls.Go(func() {
				// An error says that the node is not there yet.
				_, _ = list.Join([]string{name + "/" + alias(name)})
			})
		}
		calls.Wait()
		timer.Reset(rejoinInterval)
	}
}

// down returns some of the nodes that should be here and are not.
func (g *Gossip) down() []string {
	const atOnce = 5
	known := g.opts.Known()
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	if g.mu.left {
		return nil
	}
	for name := range known { // in a random order
		if _, here := g.mu.members[name]; here || name == g.opts.Self {
			continue
		}
		if out = append(out, name); len(out) == atOnce {
			break
		}
	}
	return out
}

// Leave tells the others that this node goes away, so that they need not find
// out; it returns when that is on its way, after at most a second. The node is
// silent afterwards.
func (g *Gossip) Leave() {
	g.mu.Lock()
	g.mu.left = true
	list := g.mu.list
	g.mu.Unlock()
	if list == nil {
		return
	}
	if err := list.Leave(leaveTimeout); err != nil {
		g.log.Debug("nobody was there to take leave of", zap.Error(err))
	}
}

// Refresh has the others told what Info says now. It does not wait for that.
func (g *Gossip) Refresh() {
	g.mu.Lock()
	list := g.mu.list
	g.mu.Unlock()
	if list != nil {
		_ = list.UpdateNode(time.Millisecond) // the error says that it has not spread yet
	}
}
