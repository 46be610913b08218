package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/member"
	"divan/cluster/meta"
	"divan/cluster/meta/raftlog"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	serviceMeta = "meta" // the service of a node for its part of the metadata
	serviceHTTP = "http" // the service of a node for requests that are meant for it

	raftTimeout     = 10 * time.Second // for one message of Raft
	raftConnections = 3                // kept to each node
)

// links holds a node's connections to the other nodes of its cluster. A node that stands
// alone has none.
type links struct {
	name        string
	base        *base
	log         *zap.Logger
	place       *clusterPlace
	members     *membership
	invitations *invitations
	// load returns how many requests are under way, and where HTTP is served; nil: nowhere yet.
	load func() (requests int, addr net.Addr)

	port         *wire.Port
	server       *wire.Server
	pool         *wire.Pool
	streams      *wire.GossipStreams
	gossip       *member.Gossip
	bootstrapper *bootstrapper
	raft         *raft.NetworkTransport
	draining     atomic.Bool
}

// newLinks takes the cluster port and builds what talks over it.
func newLinks(ctx context.Context, b *base, load func() (requests int, addr net.Addr)) (_ *links, err error) {
	s := b.config.Load()
	l := &links{name: b.name, base: b, log: b.log.Named("cluster"), load: load}
	l.members = &membership{name: b.name, config: b.config, seeds: map[string]string{}, log: l.log}
	for _, seed := range s.Cluster.SeedList {
		if node, address, ok := config.ParseSeed(seed); ok {
			l.members.seeds[node] = address
		}
	}
	if err := s.Cluster.CheckSecret(); err != nil {
		return nil, err
	}
	if len(l.members.seeds) > 0 && s.Cluster.Secret == "" {
		return nil, errors.New("nodes with a seed list need the same secret: set it in section [cluster] or as COUCHDB_ERLANG_COOKIE")
	}
	if l.members.id, err = openIdentity(ctx, b.cfg.fileSystem(), b.cfg.DataDir); err != nil {
		return nil, err
	}
	if err := b.archiveMeta(ctx, l.members.id); err != nil {
		return nil, err
	}
	certificates, err := newClusterTLS(s.Cluster, l.log)
	if err != nil {
		return nil, err
	}
	if l.place, err = takePlace(ctx, b.cfg.network(), s, b.name); err != nil {
		return nil, err
	}
	l.invitations = &invitations{members: l.members, address: l.place.advertise}
	if err := l.connect(certificates, s.Cluster.SeedList); err != nil {
		return nil, errors.Join(err, l.place.close())
	}
	return l, nil
}

func (l *links) connect(certificates *clusterTLS, seedList []string) (err error) {
	l.port, err = wire.NewPort(wire.PortOptions{
		Self: l.name, Network: l.place, Address: l.place.advertise, Secret: l.members.secret,
		TLS: certificates.current, Resolve: l.resolve, Foreign: l.members.foreign, Logger: l.log.Named("port"),
		NodeDownAfter: l.downAfter(),
	})
	if err != nil {
		return fmt.Errorf("cluster port: %w", err)
	}
	l.streams = l.port.Gossip()
	l.pool = wire.NewPool(l.port, l.log.Named("peers"))
	l.gossip, err = member.New(member.Options{
		Self: l.name, Secret: l.members.secret(), Info: l.info, Packets: l.place, Address: func() string { return l.place.advertise },
		Streams: l.streams, Known: l.members.known, Logger: l.log.Named("gossip"),
		NodeDownAfter: l.downAfter(),
	})
	if err != nil {
		return err
	}
	l.bootstrapper = newBootstrapper(l.name, seedList, l.members.id, l.log)
	l.bootstrapper.ask, l.bootstrapper.occupied = l.pool.Ask, l.occupied
	l.raft = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: l.port.Raft(), MaxPool: raftConnections, Timeout: raftTimeout, Logger: raftlog.New(l.log),
		MsgpackUseNewTimeFormat: true,
		// No pipelining: in version 1.7.3 a follower's refusal can leave the
		// leader's side of a pipeline waiting for ever (hashicorp/raft issue
		// 612), and the node then never stops. Commands that wait travel
		// together all the same.
		MaxRPCsInFlight: 1,
	})
	return nil
}

// downAfter is how long another node may be silent before it counts as down.
func (l *links) downAfter() time.Duration { return l.base.config.Load().Cluster.NodeDownAfter }

// describe tells the metadata about this node and the others.
func (l *links) describe(o *meta.Options) {
	s := l.base.config.Load()
	o.Self = meta.Node{
		Name: l.name, RPC: l.place.advertise, HTTP: net.JoinHostPort(l.host(), strconv.Itoa(s.Chttpd.Port)),
		Zone: s.Cluster.Zone, Version: l.base.cfg.Version,
	}
	o.Transport, o.OnGroupID, o.Alive, o.NodeDownAfter = l.raft, l.belong, l.alive, s.Cluster.NodeDownAfter
	o.Ask = func(ctx context.Context, node string, request []byte) ([]byte, error) {
		return l.pool.Ask(ctx, node, serviceMeta, request)
	}
}

// host returns where other nodes find this one.
func (l *links) host() string {
	host, _, _ := net.SplitHostPort(l.place.advertise) // checked or made by JoinHostPort
	return host
}

// serve builds what answers the other nodes, when all that it needs is there: the
// operations on copies, and the services of upper floors.
func (l *links) serve(copies *replica.Local, services map[string]wire.Handler) {
	services[serviceSeed] = l.answerSeed
	l.server = wire.NewServer(wire.ServerOptions{Operations: copies.Operations(), Handlers: services, Logger: l.log.Named("calls")})
}

// parts returns what lives of the links, from the lowest floor up.
func (l *links) parts() []part {
	return []part{
		{name: "cluster port", run: l.port.Run, close: l.place.close, up: l.listening},
		{name: "calls", run: func(ctx context.Context) error { return l.server.Run(ctx, l.port) }, close: nothing},
		{name: "peers", run: l.pool.Run, close: nothing, up: l.reaching},
		{name: "gossip", run: l.talk, close: nothing, down: l.gossip.Leave},
	}
}

// talk gossips with the others, once this node belongs to them: a stranger
// could have the name of a member.
func (l *links) talk(ctx context.Context) error {
	if l.members.id.load().UUID == "" {
		select {
		case <-l.members.meta.Ready():
		case <-ctx.Done():
			return nil
		}
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	telling.Go(func() { l.tellNews(ctx) })
	return l.gossip.Run(ctx)
}

// newsEvery is how often others are told what changed about this node, its load
// above all.
const newsEvery = 15 * time.Second

// tellNews tells the others what changed about this node until ctx ends.
func (l *links) tellNews(ctx context.Context) {
	told := l.info()
	for pause.For(ctx, newsEvery) == nil {
		if now := l.info(); now != told {
			told = now
			l.gossip.Refresh()
		}
	}
}

// listening waits until the cluster port accepts.
func (l *links) listening(ctx context.Context) error {
	select {
	case <-l.port.Listening():
		l.log.Info("listening for other nodes", zap.Stringer("at", l.port.Addr()), zap.String("advertised", l.place.advertise))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reaching waits until other nodes can be asked, as the metadata does when it
// looks for its cluster.
func (l *links) reaching(ctx context.Context) error {
	select {
	case <-l.pool.Started():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopRaft ends Raft's transport, when no part of the node needs it any more.
func (l *links) stopRaft() error {
	if l == nil {
		return nil
	}
	return l.raft.Close()
}

// close releases what runs without being started.
func (l *links) close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.stopRaft(), l.place.close())
}

// drain tells the others that this node is about to stop.
func (l *links) drain() {
	l.draining.Store(true)
	l.gossip.Refresh()
}

// resolve returns where a node is: what it said itself, what the metadata say,
// what was known when this node ran last, what the seed list says. A node that
// is neither a member nor here is unknown, as far as the members are known.
func (l *links) resolve(node string) (string, bool) {
	if node == l.name {
		return l.place.advertise, true
	}
	member, isMember := l.members.meta.Node(node)
	if !isMember && !l.gossip.Alive(node) && l.members.joined() {
		return "", false
	}
	if address, ok := l.gossip.Address(node); ok {
		return address, true
	}
	if isMember && member.RPC != "" {
		return member.RPC, true
	}
	if address, ok := l.members.id.load().Nodes[node]; ok {
		return address, true
	}
	address, ok := l.members.seeds[node]
	return address, ok
}

// info returns this node's description of itself.
func (l *links) info() member.Info {
	requests, addr := l.load()
	i := member.Info{
		RPC: l.place.advertise, Zone: l.base.config.Load().Cluster.Zone, Version: l.base.cfg.Version, Draining: l.draining.Load(),
		Load: requests,
	}
	if addr != nil {
		_, port, _ := net.SplitHostPort(addr.String()) // of a listener
		i.HTTP = net.JoinHostPort(l.host(), port)
	}
	return i
}

// alive reports whether a node can be asked. The connection to it tells within
// half a second, gossip takes longer.
func (l *links) alive(node string) bool { return node == l.name || l.pool.Reachable(node) }

// occupied reports whether another node of the cluster answers at an address.
func (l *links) occupied(ctx context.Context, address string) bool {
	if address == l.place.advertise {
		return false
	}
	conn, err := l.streams.Dial(ctx, address)
	if err != nil {
		return false
	}
	_ = conn.Close() // that it answers is enough
	return true
}

// answerSeed tells a node that starts whether this one belongs to a cluster. A
// node that has metadata and cannot use it yet, or is about to join, says that
// it cannot tell: who hears that it belongs to none may found another cluster.
func (l *links) answerSeed(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	switch {
	case l.members.joined():
		return json.Marshal(seedAnswer{Member: true, UUID: l.members.meta.UUID(), Nodes: addresses(l.members.meta.Nodes())})
	case l.bootstrapper.free(ctx):
		return json.Marshal(seedAnswer{})
	}
	return nil, fault.Newf(fault.Unavailable, "%s cannot say yet which cluster it belongs to.", l.name)
}

// belong is told of the cluster that this node is part of.
func (l *links) belong(origin string) {
	l.invitations.inGroup.Store(true)
	l.bootstrapper.begin()
	l.port.Belong(origin)
}
