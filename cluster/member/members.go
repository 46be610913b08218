package member

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"
)

// Members returns the nodes that are here, this one included, sorted by name.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	out := make([]Member, 0, len(g.mu.members)+1)
	for name, info := range g.mu.members {
		out = append(out, Member{Name: name, Info: info})
	}
	g.mu.Unlock()
	out = append(out, Member{Name: g.opts.Self, Info: g.opts.Info()})
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Alive reports whether a node is here. This node is.
func (g *Gossip) Alive(node string) bool {
	if node == g.opts.Self {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.mu.members[node]
	return ok
}

// Address returns where the cluster port of another node is: what it said
// itself when it was here last, else what is known of it.
func (g *Gossip) Address(node string) (address string, ok bool) {
	g.mu.Lock()
	address, ok = g.mu.last[node]
	g.mu.Unlock()
	if ok {
		return address, true
	}
	address, ok = g.opts.Known()[node]
	return address, ok
}

// Subscribe has f called when another node comes or goes, in the order in which
// that happens to one node. f must neither block nor call the Gossip's Leave or
// Refresh. cancel ends the calls.
func (g *Gossip) Subscribe(f func(node string, up bool)) (cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.mu.nextID
	g.mu.nextID++
	g.mu.subs[id] = f
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.mu.subs, id)
	}
}

// eventDelegate hears from hashicorp/memberlist who comes and goes. It is called by
// one goroutine at a time, which holds a lock of the library.
type eventDelegate struct{ *Gossip }

// NotifyJoin implements memberlist.EventDelegate.
func (l eventDelegate) NotifyJoin(n *memberlist.Node) { l.update(n, true) }

// NotifyUpdate implements memberlist.EventDelegate.
func (l eventDelegate) NotifyUpdate(n *memberlist.Node) { l.update(n, true) }

// NotifyLeave implements memberlist.EventDelegate.
func (l eventDelegate) NotifyLeave(n *memberlist.Node) { l.update(n, false) }

func (l eventDelegate) update(n *memberlist.Node, up bool) {
	if n.Name == l.opts.Self {
		return
	}
	info := decodeInfo(n.Meta)
	l.mu.Lock()
	_, was := l.mu.members[n.Name]
	if up {
		l.mu.members[n.Name] = info
		if info.RPC != "" {
			l.mu.last[n.Name] = info.RPC
		}
	} else {
		delete(l.mu.members, n.Name)
	}
	var tell []func(string, bool)
	if was != up {
		for _, id := range slices.Sorted(maps.Keys(l.mu.subs)) {
			tell = append(tell, l.mu.subs[id])
		}
	}
	l.mu.Unlock()
	switch {
	case was == up:
	case up:
		l.log.Info("a node is here", zap.String("node", n.Name), zap.String("address", info.RPC))
	default:
		l.log.Info("a node is gone", zap.String("node", n.Name), zap.Bool("announced", info.Draining))
	}
	for _, f := range tell {
		f(n.Name, up)
	}
}

// delegate tells hashicorp/memberlist what this node says about itself.
type delegate struct{ *Gossip }

// NodeMeta implements memberlist.Delegate.
func (s delegate) NodeMeta(limit int) []byte { return s.opts.Info().encode(limit) }

// NotifyMsg implements memberlist.Delegate.
func (delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (delegate) MergeRemoteState([]byte, bool) {}
