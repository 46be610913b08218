package lost

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/paths"
)

// The name of a copy says where it lies, and its directory which copy of its database it is. A
// directory that says another id than the map has under its name was left on this node by an
// earlier copy: it is set aside.

// Map is the part of the cluster's metadata that Identify uses; *meta.Meta is one.
type Map interface {
	CopyIn(copyName, node string) (*meta.Database, ring.Copy, bool)
	CatchUp(ctx context.Context) error
}

// Identify compares the ids of all directories with the map. node is this node. stays
// says that a directory of another copy could not be set aside yet.
func (r *Register) Identify(ctx context.Context, m Map, node string) (stays bool, err error) {
	stored, err := r.shards.Stored()
	if err != nil {
		return false, err
	}
	return r.identify(ctx, m, node, stored), nil
}

// IdentifyCopies is Identify for some copies.
func (r *Register) IdentifyCopies(ctx context.Context, m Map, node string, names []string) (stays bool) {
	var stored []paths.Store
	for _, name := range names {
		if id, err := r.shards.ID(name); err == nil {
			stored = append(stored, paths.Store{Name: name, CopyID: id})
		}
	}
	return r.identify(ctx, m, node, stored)
}

func (r *Register) identify(ctx context.Context, m Map, node string, stored []paths.Store) (stays bool) {
	for i := range stored {
		s := &stored[i]
		_, one, here := m.CopyIn(s.Name, node)
		switch {
		case ctx.Err() != nil:
			return true
		case !here || one.ID == s.CopyID || s.Other:
		default:
			stays = !r.displace(ctx, m, node, s) || stays
		}
	}
	return stays
}

// displace sets the directory of another copy aside, unless the map was behind. It returns
// false when that could not be done, or told, yet.
func (r *Register) displace(ctx context.Context, m Map, node string, s *paths.Store) bool {
	if err := m.CatchUp(ctx); err != nil {
		r.log.Warn("directory of another copy stays: the map may be behind", zap.String("copy", s.Name), zap.Error(err))
		return false
	}
	if _, one, here := m.CopyIn(s.Name, node); here && one.ID != s.CopyID {
		return r.SetAside(ctx, s.Name, fmt.Sprintf("it is that of copy %d, and the map has copy %d here", s.CopyID, one.ID))
	}
	return true
}
