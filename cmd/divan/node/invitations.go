package node

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/setup"
	"divan/httpapi"
	"divan/storage/fault"
)

// invitations are how nodes are taken into a cluster: this node invites others to its own,
// and accepts that of another.
type invitations struct {
	members *membership
	address string      // of the cluster port of this node
	inGroup atomic.Bool // a cluster has taken this node in, or it has founded one: Raft runs, or is about to
}

// Invitation implements httpapi.Cluster.
func (i *invitations) Invitation() httpapi.Invitation {
	seeds := addresses(i.members.meta.Nodes())
	seeds[i.members.name] = i.address
	return httpapi.Invitation{Cookie: i.members.secret(), UUID: i.members.meta.UUID(), Seeds: seeds}
}

// Accept implements httpapi.Cluster.
func (i *invitations) Accept(ctx context.Context, inv httpapi.Invitation) (httpapi.NodeInfo, error) {
	self := httpapi.NodeInfo{Name: i.members.name, Address: i.address}
	if i.memberOf(inv) {
		return self, nil
	}
	waiting := i.waiting(i.members.id.load())
	if err := i.mayJoin(ctx, inv, waiting); err != nil {
		return httpapi.NodeInfo{}, err
	}
	joined := false
	next := identity{Version: identityVersion, UUID: inv.UUID, Secret: inv.Cookie, Nodes: maps.Clone(inv.Seeds), Invited: true}
	settings := i.members.config.Layer(config.Node).Set
	err := i.members.id.update(ctx, func(id *identity) {
		next.Settings = settings
		if waiting { // those before the first invitation are with the metadata, out of the way
			next.Settings, next.Archived = id.Settings, id.Archived
		}
		if joined = waiting && !i.waiting(*id); !joined {
			*id = next
		}
	})
	if err != nil {
		return httpapi.NodeInfo{}, err
	}
	if joined {
		return httpapi.NodeInfo{}, fault.Newf(fault.Unavailable, "%s is joining the cluster that invited it before.", i.members.name)
	}
	i.members.log.Info("invited to a cluster", zap.String("uuid", inv.UUID), zap.Strings("nodes", slices.Sorted(maps.Keys(inv.Seeds))))
	return self, nil
}

// memberOf reports whether an invitation is to the cluster that this node
// belongs to. The uuid alone does not tell: it may come from a file.
func (i *invitations) memberOf(inv httpapi.Invitation) bool {
	if inv.UUID != i.members.meta.UUID() {
		return false
	}
	for name := range inv.Seeds {
		if _, ok := i.members.meta.Node(name); ok && name != i.members.name {
			return true
		}
	}
	return false
}

// waiting reports whether a node with that identity has been invited, has put its own
// metadata out of the way, and has not been taken in yet.
func (i *invitations) waiting(id identity) bool {
	return id.Invited && id.Archived && !i.inGroup.Load()
}

// mayJoin refuses an invitation that this node cannot accept. One that still
// waits for those who invited it first, which may be for ever, has no metadata
// to look at: it was empty when it accepted.
func (i *invitations) mayJoin(ctx context.Context, inv httpapi.Invitation, waiting bool) error {
	refuse := func(format string, args ...any) error { return fault.Newf(fault.BadRequest, format, args...) }
	m := i.members.meta
	switch configured := i.members.config.Load().Cluster.Secret; {
	case inv.Cookie == "" || inv.UUID == "" || len(inv.Seeds) == 0:
		return refuse("The invitation lacks the cookie, the uuid or the nodes of the cluster.")
	case configured != "" && configured != inv.Cookie:
		return refuse("%s was given a secret that is not that of the cluster.", i.members.name)
	}
	if address, taken := inv.Seeds[i.members.name]; taken && (address != i.address || len(inv.Seeds) == 1) {
		return refuse("The cluster has a node %s at %s already; give this node another name (NODENAME or --name).", i.members.name, address)
	}
	if waiting {
		return nil
	}
	if err := m.CatchUp(ctx); err != nil {
		return err
	}
	if nodes := m.Nodes(); len(nodes) > 1 {
		return refuse("%s belongs to cluster %s already, with %v.", i.members.name, m.UUID(), slices.Sorted(maps.Keys(addresses(nodes))))
	}
	system := setup.SystemDatabases()
	for db := range m.Databases().All() {
		if !slices.Contains(system, db.Name) {
			return refuse("%s has databases of its own, like %s; a node that joins a cluster must be empty.", i.members.name, db.Name)
		}
	}
	return nil
}
