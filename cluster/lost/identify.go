package lost

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
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

// Identify compares the ids of all directories with the map, and has those that do not
// tell theirs yet, as programs of before have made them, tell it. node is this node. stays
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
		db, one, _ := m.CopyIn(s.Name, node)
		want := one.ID
		switch {
		case ctx.Err() != nil:
			return true
		case want == 0 || want == s.CopyID || s.Other:
		case s.CopyID == 0 && want <= db.Unnamed:
			r.name(s.Name, want)
		default:
			stays = !r.displace(ctx, m, node, s) || stays
		}
	}
	return stays
}

// name has the directory of a copy tell which one it is.
func (r *Register) name(copyName string, id uint64) bool {
	err := r.shards.SetID(copyName, id)
	if err != nil && !fault.Is(err, fault.NoCopy) {
		r.log.Error("directory of a copy does not tell which one it is", zap.String("copy", copyName), zap.Error(err))
	}
	return err == nil
}

// EndRebuilding makes a directory that a program of before had marked as incomplete that
// of the copy with an id, which joins, or is the last one of its range.
func (r *Register) EndRebuilding(copyName string, id uint64) {
	if !r.name(copyName, id) {
		return
	}
	if err := r.shards.EndRebuilding(copyName); err != nil {
		r.log.Error("mark of an incomplete copy stays", zap.String("copy", copyName), zap.Error(err))
	}
}

// displace sets the directory of another copy aside, unless the map was behind. It returns
// false when that could not be done, or told, yet.
func (r *Register) displace(ctx context.Context, m Map, node string, s *paths.Store) bool {
	if err := m.CatchUp(ctx); err != nil {
		r.log.Warn("directory of another copy stays: the map may be behind", zap.String("copy", s.Name), zap.Error(err))
		return false
	}
	if _, one, _ := m.CopyIn(s.Name, node); one.ID != 0 && one.ID != s.CopyID {
		return r.SetAside(ctx, s.Name, fmt.Sprintf("it is that of copy %d, and the map has copy %d here", s.CopyID, one.ID))
	}
	return true
}
