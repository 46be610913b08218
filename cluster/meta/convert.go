package meta

import (
	"errors"
	"fmt"
	"slices"
	"unique"

	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

// proto returns a database as log, snapshots and answers have it.
func (d *Database) proto() *metapb.Database {
	p := &metapb.Database{
		Name: d.Name, Created: d.Created, Id: d.ID[:], N: int64(d.N), Partitioned: d.Partitioned, Security: d.Security,
		Shards:     make([]*metapb.Shard, len(d.Shards)),
		Generation: d.Generation, Born: d.Born, FullGeneration: d.FullGeneration,
	}
	for s, value := range d.Settings.Changed() {
		p.Settings = append(p.Settings, &metapb.Setting{Number: uint32(s), Value: int64(value)})
	}
	place := func(node string) uint32 {
		at := slices.Index(p.Nodes, node)
		if at < 0 {
			at = len(p.Nodes)
			p.Nodes = append(p.Nodes, node)
		}
		return uint32(at)
	}
	for i, s := range d.Shards {
		shard := &metapb.Shard{Begin: s.Begin, End: s.End, Nodes: make([]uint32, len(s.Copies))}
		states := make([]uint32, len(s.Copies))
		for j, c := range s.Copies {
			shard.Nodes[j] = place(c.Node)
			if c.Instead != "" {
				if shard.Instead == nil {
					shard.Instead = make([]uint32, len(s.Copies))
				}
				shard.Instead[j] = place(c.Instead) + 1
			}
			if c.ID != 0 {
				shard.Copies = append(shard.Copies, c.ID)
			}
			if states[j] = uint32(c.State); c.State != ring.StateFull {
				shard.States = states
			}
		}
		p.Shards[i] = shard
	}
	return p
}

// knownSettings reports whether this program knows all of them.
func knownSettings(list []*metapb.Setting) bool {
	return !slices.ContainsFunc(list, func(s *metapb.Setting) bool { return !dbsetting.Setting(s.Number).Known() })
}

// set gives a database that is being made some settings.
func (d *Database) set(list []*metapb.Setting) {
	for _, s := range list {
		d.Settings = d.Settings.With(dbsetting.Setting(s.Number), int(s.Value))
	}
}

// databaseFrom checks a database that was read.
func databaseFrom(p *metapb.Database) (*Database, error) {
	d, err := wishFrom(p)
	if err == nil && !ring.Identified(d.Shards) {
		return nil, fmt.Errorf("%w: ids of the copies of %q", errMalformed, d.Name)
	}
	return d, err
}

// wishFrom is databaseFrom for one that is to be created: its copies have no ids yet.
func wishFrom(p *metapb.Database) (*Database, error) {
	d := &Database{
		Name: p.Name, Created: p.Created, Suffix: suffixOf(p.Created), N: int(p.N), Partitioned: p.Partitioned, Security: p.Security,
		Settings: dbsetting.Standard(), Shards: make([]ring.Shard, len(p.Shards)),
		Generation: p.Generation, Born: p.Born, FullGeneration: p.FullGeneration,
	}
	if !knownSettings(p.Settings) {
		return nil, fmt.Errorf("%w: settings of %q; a newer version wrote them", errMalformed, d.Name)
	}
	d.set(p.Settings)
	for i, node := range p.Nodes {
		p.Nodes[i] = unique.Make(node).Value() // many databases repeat it
	}
	for i, s := range p.Shards {
		copies, err := copiesFrom(p, s)
		if err != nil {
			return nil, err
		}
		d.Shards[i] = ring.Shard{Range: ring.Range{Begin: s.Begin, End: s.End}, Copies: copies}
	}
	if d.Name == "" || d.Created <= 0 || copy(d.ID[:], p.Id) != len(d.ID) || !ring.Valid(d.Shards) {
		return nil, fmt.Errorf("%w: database %q", errMalformed, d.Name)
	}
	return d, nil
}

// copiesFrom reads the copies of a range.
func copiesFrom(p *metapb.Database, s *metapb.Shard) ([]ring.Copy, error) {
	out := make([]ring.Copy, len(s.Nodes))
	if other := func(n int) bool { return n > 0 && n != len(out) }; other(len(s.Copies)) || other(len(s.States)) || other(len(s.Instead)) {
		return nil, fmt.Errorf("%w: copies of a shard", errMalformed)
	}
	for j, at := range s.Nodes {
		if uint64(at) >= uint64(len(p.Nodes)) || p.Nodes[at] == "" {
			return nil, fmt.Errorf("%w: node of a shard", errMalformed)
		}
		out[j].Node = p.Nodes[at]
		if len(s.Copies) > 0 {
			out[j].ID = s.Copies[j]
		}
		if len(s.States) > 0 {
			if s.States[j] >= uint32(ring.StateGone) {
				return nil, fmt.Errorf("%w: state of a copy", errMalformed)
			}
			out[j].State = ring.State(s.States[j])
		}
		if len(s.Instead) > 0 && s.Instead[j] > 0 {
			at := uint64(s.Instead[j]) - 1
			if at >= uint64(len(p.Nodes)) || p.Nodes[at] == "" {
				return nil, fmt.Errorf("%w: node of a shard", errMalformed)
			}
			out[j].Instead = p.Nodes[at]
		}
	}
	return out, nil
}

func (n Node) proto() *metapb.Node {
	return &metapb.Node{Name: n.Name, Http: n.HTTP, Rpc: n.RPC, Zone: n.Zone, Draining: n.Draining, Version: n.Version, ClusterVersion: n.ClusterVersion}
}

func nodeFrom(p *metapb.Node) Node {
	return Node{
		Name: p.GetName(), HTTP: p.GetHttp(), RPC: p.GetRpc(), Zone: p.GetZone(), Draining: p.GetDraining(), Version: p.GetVersion(),
		ClusterVersion: p.GetClusterVersion(),
	}
}

// refusal returns what a client is told; nil for an error that is no fault.
func refusal(err error) *metapb.Refusal {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	return &metapb.Refusal{Kind: uint32(f.Kind), Code: f.Code, Reason: f.Reason}
}

// refusalError returns nil for no refusal.
func refusalError(p *metapb.Refusal) error {
	if p == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Kind(min(p.Kind, 255)), Code: p.Code, Reason: p.Reason}
}
