package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/member"
	"divan/cluster/meta"
	"divan/cluster/meta/raftlog"
	"divan/cluster/setup"
	"divan/cluster/wire"
	"divan/httpapi"
	"divan/reshard/rebalance"
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
	node  *Node
	name  string
	log   *zap.Logger
	place *clusterPlace
	id    *identityStore
	seeds map[string]string // of the seed list, names and addresses

	port         *wire.Port
	server       *wire.Server
	pool         *wire.Pool
	streams      *wire.GossipStreams
	gossip       *member.Gossip
	bootstrapper *bootstrapper
	raft         *raft.NetworkTransport
	draining     atomic.Bool
	inGroup      atomic.Bool // a cluster has taken this node in, or it has founded one: Raft runs, or is about to
}

// newLinks takes the cluster port and builds what talks over it.
func (n *Node) newLinks(ctx context.Context) (_ *links, err error) {
	s := n.config.Load()
	l := &links{node: n, name: n.name, log: n.log.Named("cluster"), seeds: map[string]string{}}
	for _, seed := range s.Cluster.SeedList {
		if node, address, ok := config.ParseSeed(seed); ok {
			l.seeds[node] = address
		}
	}
	if err := s.Cluster.CheckSecret(); err != nil {
		return nil, err
	}
	if len(l.seeds) > 0 && s.Cluster.Secret == "" {
		return nil, errors.New("nodes with a seed list need the same secret: set it in section [cluster] or as COUCHDB_ERLANG_COOKIE")
	}
	if l.id, err = openIdentity(ctx, n.cfg.fileSystem(), n.cfg.DataDir); err != nil {
		return nil, err
	}
	if err := n.archiveMeta(ctx, l.id); err != nil {
		return nil, err
	}
	certificates, err := newClusterTLS(s.Cluster, l.log)
	if err != nil {
		return nil, err
	}
	if l.place, err = takePlace(ctx, n.cfg.network(), s, n.name); err != nil {
		return nil, err
	}
	if err := l.connect(certificates, s.Cluster.SeedList); err != nil {
		return nil, errors.Join(err, l.place.close())
	}
	return l, nil
}

func (l *links) connect(certificates *clusterTLS, seedList []string) (err error) {
	l.port, err = wire.NewPort(wire.PortOptions{
		Self: l.name, Network: l.place, Address: l.place.advertise, Secret: l.secret,
		TLS: certificates.current, Resolve: l.resolve, Foreign: l.foreign, Logger: l.log.Named("port"),
		NodeDownAfter: l.downAfter(),
	})
	if err != nil {
		return fmt.Errorf("cluster port: %w", err)
	}
	l.streams = l.port.Gossip()
	l.pool = wire.NewPool(l.port, l.log.Named("peers"))
	l.gossip, err = member.New(member.Options{
		Self: l.name, Secret: l.secret(), Info: l.info, Packets: l.place, Address: func() string { return l.place.advertise },
		Streams: l.streams, Known: l.known, Logger: l.log.Named("gossip"),
		NodeDownAfter: l.downAfter(),
	})
	if err != nil {
		return err
	}
	l.bootstrapper = newBootstrapper(l.name, seedList, l.id, l.log)
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
func (l *links) downAfter() time.Duration { return l.node.config.Load().Cluster.NodeDownAfter }

// describe tells the metadata about this node and the others.
func (l *links) describe(o *meta.Options) {
	s := l.node.config.Load()
	o.Self = meta.Node{
		Name: l.name, RPC: l.place.advertise, HTTP: net.JoinHostPort(l.host(), strconv.Itoa(s.Chttpd.Port)),
		Zone: s.Cluster.Zone, Version: l.node.cfg.Version,
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

// serve builds what answers the other nodes, when all that it needs is there.
func (l *links) serve() {
	l.server = wire.NewServer(wire.ServerOptions{
		Operations: l.copiesForOthers().Operations(), Handlers: l.handlers(), Logger: l.log.Named("calls"),
	})
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
	if l.id.load().UUID == "" {
		select {
		case <-l.node.meta.Ready():
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

// makeSystemDatabases makes the system databases of a cluster that formed by a seed list, where no
// administrator finishes a set-up: the first node of the list does, once all nodes of it
// are members, so that each has its copies. What fails is tried again until ctx ends.
func (l *links) makeSystemDatabases(ctx context.Context) error {
	if len(l.bootstrapper.seeds) == 0 || l.bootstrapper.seeds[0] != l.name {
		return nil
	}
	select {
	case <-l.node.meta.Ready():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		changed := l.node.meta.NodesChanged()
		if l.allJoined() {
			if l.tryMakeSystemDatabases(ctx) {
				return nil
			}
			_ = pause.For(ctx, time.Second)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// tryMakeSystemDatabases makes the system databases; false when that has to be tried again.
func (l *links) tryMakeSystemDatabases(ctx context.Context) bool {
	err := l.node.makeSystemDatabases(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.Warn("system databases not made yet", zap.Error(err))
	}
	return err == nil
}

// allJoined reports whether every node of the seed list is a member.
func (l *links) allJoined() bool {
	for _, seed := range l.bootstrapper.seeds {
		if _, member := l.node.meta.Node(seed); !member {
			return false
		}
	}
	return true
}

// secret returns what nodes prove to each other: the configured one, else that
// of the identity.
func (l *links) secret() string {
	if s := l.node.config.Load().Cluster.Secret; s != "" {
		return s
	}
	return l.id.load().Secret
}

// resolve returns where a node is: what it said itself, what the metadata say,
// what was known when this node ran last, what the seed list says. A node that
// is neither a member nor here is unknown, as far as the members are known.
func (l *links) resolve(node string) (string, bool) {
	if node == l.name {
		return l.place.advertise, true
	}
	member, isMember := l.node.meta.Node(node)
	if !isMember && !l.gossip.Alive(node) && l.joined() {
		return "", false
	}
	if address, ok := l.gossip.Address(node); ok {
		return address, true
	}
	if isMember && member.RPC != "" {
		return member.RPC, true
	}
	if address, ok := l.id.load().Nodes[node]; ok {
		return address, true
	}
	address, ok := l.seeds[node]
	return address, ok
}

// known returns the nodes that should be here: the members, and as long as they are not
// known, every node that may be one.
func (l *links) known() map[string]string {
	if nodes := l.node.meta.Nodes(); len(nodes) > 0 {
		return addresses(nodes)
	}
	out := maps.Clone(l.seeds)
	maps.Copy(out, l.id.load().Nodes)
	return out
}

func addresses(nodes []meta.Node) map[string]string {
	out := make(map[string]string, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n.RPC
	}
	return out
}

// info returns this node's description of itself.
func (l *links) info() member.Info {
	i := member.Info{
		RPC: l.place.advertise, Zone: l.node.config.Load().Cluster.Zone, Version: l.node.cfg.Version, Draining: l.draining.Load(),
		Load: l.node.api.Active(),
	}
	if a := l.node.Addr(); a != nil {
		_, port, _ := net.SplitHostPort(a.String()) // of a listener
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

// handlers are the services of this node for others.
func (l *links) handlers() map[string]wire.Handler {
	return map[string]wire.Handler{
		serviceMeta:   l.node.meta.Answer,
		serviceRepair: l.node.repair.Answer,
		serviceSeed:   l.answerSeed,
		serviceHTTP:   l.node.api.ServeNode,

		designdocs.Service: l.node.designs.Answer,
		rebalance.Service:  l.node.rebalancer.Answer,
	}
}

// answerSeed tells a node that starts whether this one belongs to a cluster. A
// node that has metadata and cannot use it yet, or is about to join, says that
// it cannot tell: who hears that it belongs to none may found another cluster.
func (l *links) answerSeed(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	switch {
	case l.joined():
		return json.Marshal(seedAnswer{Member: true, UUID: l.node.meta.UUID(), Nodes: addresses(l.node.meta.Nodes())})
	case l.bootstrapper.free(ctx):
		return json.Marshal(seedAnswer{})
	}
	return nil, fault.Newf(fault.Unavailable, "%s cannot say yet which cluster it belongs to.", l.name)
}

// belong is told of the cluster that this node is part of.
func (l *links) belong(origin string) {
	l.inGroup.Store(true)
	l.bootstrapper.begin()
	l.port.Belong(origin)
}

// foreign tells an operator, once for each node, that a node was refused because it is
// part of another cluster. One of the two has most likely lost its disk and had no node to
// ask.
func (l *links) foreign(node string) {
	const remedy = "stop %s, remove its data directory, and start it with a seed list that names another node, " +
		"or without one and add it again through POST /_cluster_setup on a member"
	uuid := zap.String("uuid", l.node.meta.UUID())
	if _, member := l.node.meta.Node(node); member {
		l.log.Error("a member of this cluster is part of another cluster now and is refused: "+
			"it has most likely lost its data directory and founded that one",
			zap.String("node", node), uuid, zap.String("remedy", fmt.Sprintf(remedy, node)))
		return
	}
	l.log.Error("a node of another cluster takes this one for a member and is refused: "+
		"this node has most likely lost its data directory and founded a cluster of its own",
		zap.String("node", node), uuid, zap.String("remedy", "if so, "+fmt.Sprintf(remedy, "this node")))
}

// joined reports whether this node belongs to a cluster and knows its state.
func (l *links) joined() bool {
	select {
	case <-l.node.meta.Ready():
		_, member := l.node.meta.Node(l.name)
		return member
	default:
		return false
	}
}

// remember keeps the identity in line with the metadata until ctx ends. An invitation that
// waits for the restart of the node is left alone, because the metadata are those that the
// node gives up, unless another node has joined them meanwhile: a group of two is not left.
func (l *links) remember(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.node.meta.Ready():
	}
	for ctx.Err() == nil {
		changed := l.node.meta.NodesChanged()
		uuid, now := l.node.meta.UUID(), addresses(l.node.meta.Nodes())
		id := l.id.load()
		givenUp := id.restarts() && len(now) < 2
		if l.joined() && !givenUp && (id.UUID != uuid || !maps.Equal(id.Nodes, now) || id.Secret != l.secret() || id.Invited) {
			if err := l.id.update(ctx, func(i *identity) {
				if !i.restarts() || len(now) > 1 { // else it was invited meanwhile
					i.UUID, i.Nodes, i.Secret, i.Invited, i.Archived = uuid, now, l.secret(), false, false
				}
			}); err != nil && ctx.Err() == nil {
				l.log.Error("the members of the cluster are not kept", zap.Error(err))
				_ = pause.For(ctx, time.Second)
				continue
			}
		}
		if err := l.restore(ctx); err != nil {
			l.log.Warn("settings of this node are not made again yet", zap.Error(err))
			_ = pause.For(ctx, time.Second)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
	return nil
}

// Invitation implements httpapi.Cluster.
func (l *links) Invitation() httpapi.Invitation {
	seeds := addresses(l.node.meta.Nodes())
	seeds[l.name] = l.place.advertise
	return httpapi.Invitation{Cookie: l.secret(), UUID: l.node.meta.UUID(), Seeds: seeds}
}

// Members implements httpapi.Cluster.
func (l *links) Members() []string {
	members := l.gossip.Members()
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Name
	}
	return out
}

// Ask implements httpapi.Cluster.
func (l *links) Ask(ctx context.Context, node, service string, request []byte) ([]byte, error) {
	return l.pool.Ask(ctx, node, service, request)
}

// Seeding implements httpapi.Cluster.
func (l *links) Seeding() httpapi.SeedStatus { return l.bootstrapper.status(l.joined()) }

// Accept implements httpapi.Cluster.
func (l *links) Accept(ctx context.Context, inv httpapi.Invitation) (httpapi.NodeInfo, error) {
	self := httpapi.NodeInfo{Name: l.name, Address: l.place.advertise}
	if l.memberOf(inv) {
		return self, nil
	}
	waiting := l.waiting(l.id.load())
	if err := l.mayJoin(ctx, inv, waiting); err != nil {
		return httpapi.NodeInfo{}, err
	}
	joined := false
	next := identity{Version: identityVersion, UUID: inv.UUID, Secret: inv.Cookie, Nodes: maps.Clone(inv.Seeds), Invited: true}
	settings := l.node.config.Layer(config.Node).Set
	err := l.id.update(ctx, func(i *identity) {
		next.Settings = settings
		if waiting { // those before the first invitation are with the metadata, out of the way
			next.Settings, next.Archived = i.Settings, i.Archived
		}
		if joined = waiting && !l.waiting(*i); !joined {
			*i = next
		}
	})
	if err != nil {
		return httpapi.NodeInfo{}, err
	}
	if joined {
		return httpapi.NodeInfo{}, fault.Newf(fault.Unavailable, "%s is joining the cluster that invited it before.", l.name)
	}
	l.log.Info("invited to a cluster", zap.String("uuid", inv.UUID), zap.Strings("nodes", slices.Sorted(maps.Keys(inv.Seeds))))
	return self, nil
}

// memberOf reports whether an invitation is to the cluster that this node
// belongs to. The uuid alone does not tell: it may come from a file.
func (l *links) memberOf(inv httpapi.Invitation) bool {
	if inv.UUID != l.node.meta.UUID() {
		return false
	}
	for name := range inv.Seeds {
		if _, ok := l.node.meta.Node(name); ok && name != l.name {
			return true
		}
	}
	return false
}

// waiting reports whether a node with that identity has been invited, has put its own
// metadata out of the way, and has not been taken in yet.
func (l *links) waiting(id identity) bool { return id.Invited && id.Archived && !l.inGroup.Load() }

// mayJoin refuses an invitation that this node cannot accept. One that still
// waits for those who invited it first, which may be for ever, has no metadata
// to look at: it was empty when it accepted.
func (l *links) mayJoin(ctx context.Context, inv httpapi.Invitation, waiting bool) error {
	refuse := func(format string, args ...any) error { return fault.Newf(fault.BadRequest, format, args...) }
	m := l.node.meta
	switch configured := l.node.config.Load().Cluster.Secret; {
	case inv.Cookie == "" || inv.UUID == "" || len(inv.Seeds) == 0:
		return refuse("The invitation lacks the cookie, the uuid or the nodes of the cluster.")
	case configured != "" && configured != inv.Cookie:
		return refuse("%s was given a secret that is not that of the cluster.", l.name)
	}
	if address, taken := inv.Seeds[l.name]; taken && (address != l.place.advertise || len(inv.Seeds) == 1) {
		return refuse("The cluster has a node %s at %s already; give this node another name (NODENAME or --name).", l.name, address)
	}
	if waiting {
		return nil
	}
	if err := m.CatchUp(ctx); err != nil {
		return err
	}
	if nodes := m.Nodes(); len(nodes) > 1 {
		return refuse("%s belongs to cluster %s already, with %v.", l.name, m.UUID(), slices.Sorted(maps.Keys(addresses(nodes))))
	}
	system := setup.SystemDatabases()
	for db := range m.Databases().All() {
		if !slices.Contains(system, db.Name) {
			return refuse("%s has databases of its own, like %s; a node that joins a cluster must be empty.", l.name, db.Name)
		}
	}
	return nil
}
