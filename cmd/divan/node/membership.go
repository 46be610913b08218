package node

import (
	"context"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/storage/pause"
)

// membership tells to which cluster a node belongs, and with whom, from the metadata once
// they are there, and before from the identity that it keeps and the seed list.
type membership struct {
	name   string
	config *config.Holder
	meta   *meta.Meta // set before anything runs
	id     *identityStore
	seeds  map[string]string // of the seed list, names and addresses
	log    *zap.Logger
}

// secret returns what nodes prove to each other: the configured one, else that
// of the identity.
func (m *membership) secret() string {
	if s := m.config.Load().Cluster.Secret; s != "" {
		return s
	}
	return m.id.load().Secret
}

// joined reports whether this node belongs to a cluster and knows its state.
func (m *membership) joined() bool {
	select {
	case <-m.meta.Ready():
		_, member := m.meta.Node(m.name)
		return member
	default:
		return false
	}
}

// names returns the names of the nodes of the cluster, here or not.
func (m *membership) names() []string {
	nodes := m.meta.Nodes()
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	return names
}

// known returns the nodes that should be here: the members, and as long as they are not
// known, every node that may be one.
func (m *membership) known() map[string]string {
	if nodes := m.meta.Nodes(); len(nodes) > 0 {
		return addresses(nodes)
	}
	out := maps.Clone(m.seeds)
	maps.Copy(out, m.id.load().Nodes)
	return out
}

func addresses(nodes []meta.Node) map[string]string {
	out := make(map[string]string, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n.RPC
	}
	return out
}

// foreign tells an operator, once for each node, that a node was refused because it is
// part of another cluster. One of the two has most likely lost its disk and had no node to
// ask.
func (m *membership) foreign(node string) {
	const remedy = "stop %s, remove its data directory, and start it with a seed list that names another node, " +
		"or without one and add it again through POST /_cluster_setup on a member"
	uuid := zap.String("uuid", m.meta.UUID())
	if _, member := m.meta.Node(node); member {
		m.log.Error("a member of this cluster is part of another cluster now and is refused: "+
			"it has most likely lost its data directory and founded that one",
			zap.String("node", node), uuid, zap.String("remedy", fmt.Sprintf(remedy, node)))
		return
	}
	m.log.Error("a node of another cluster takes this one for a member and is refused: "+
		"this node has most likely lost its data directory and founded a cluster of its own",
		zap.String("node", node), uuid, zap.String("remedy", "if so, "+fmt.Sprintf(remedy, "this node")))
}

// remember keeps the identity in line with the metadata until ctx ends. An invitation that
// waits for the restart of the node is left alone, because the metadata are those that the
// node gives up, unless another node has joined them meanwhile: a group of two is not left.
func (m *membership) remember(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-m.meta.Ready():
	}
	for ctx.Err() == nil {
		changed := m.meta.NodesChanged()
		uuid, now := m.meta.UUID(), addresses(m.meta.Nodes())
		id := m.id.load()
		givenUp := id.restarts() && len(now) < 2
		if m.joined() && !givenUp && (id.UUID != uuid || !maps.Equal(id.Nodes, now) || id.Secret != m.secret() || id.Invited) {
			if err := m.id.update(ctx, func(i *identity) {
				if !i.restarts() || len(now) > 1 { // else it was invited meanwhile
					i.UUID, i.Nodes, i.Secret, i.Invited, i.Archived = uuid, now, m.secret(), false, false
				}
			}); err != nil && ctx.Err() == nil {
				m.log.Error("the members of the cluster are not kept", zap.Error(err))
				_ = pause.For(ctx, time.Second)
				continue
			}
		}
		if err := m.restore(ctx); err != nil {
			m.log.Warn("settings of this node are not made again yet", zap.Error(err))
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

// restore makes the settings of this node again that were made before it was
// invited, when it is a member of the cluster that invited it.
func (m *membership) restore(ctx context.Context) error {
	id := m.id.load()
	if len(id.Settings) == 0 || id.Invited {
		return nil
	}
	for section, keys := range id.Settings {
		for key, value := range keys {
			if _, err := m.meta.Config.Set(ctx, meta.ConfigChange{Section: section, Key: key, Value: value}); err != nil {
				return fmt.Errorf("set [%s] %s again: %w", section, key, err)
			}
		}
	}
	return m.id.update(ctx, func(i *identity) {
		if !i.Invited { // invited meanwhile
			i.Settings = nil
		}
	})
}
