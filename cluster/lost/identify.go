package lost

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/storage/fault"
	"divan/storage/paths"
)

// The name of a copy says where it lies, and its directory which copy of its database it
// is. One that says another id than the map has under its name is what an earlier copy
// has left on this node: it is set aside.

// Map is what the group of the metadata knows; *meta.Meta is one.
type Map interface {
	DatabaseOf(copyName string) (*meta.Database, bool)
	Unnamed(copyName string, id uint64) bool
	CatchUp(ctx context.Context) error
}

// Identify compares the ids of all directories with the map, and has those that do not
// tell theirs yet, as programs of before have made them, tell it. node is this node.
func (r *Register) Identify(ctx context.Context, m Map, node string) error {
	stored, err := r.shards.Stored()
	if err != nil {
		return err
	}
	r.identify(ctx, m, node, stored)
	return nil
}

// IdentifyCopies is Identify for some copies.
func (r *Register) IdentifyCopies(ctx context.Context, m Map, node string, names []string) {
	var stored []paths.Store
	for _, name := range names {
		if id, err := r.shards.CopyID(name); err == nil {
			stored = append(stored, paths.Store{Name: name, CopyID: id})
		}
	}
	r.identify(ctx, m, node, stored)
}

func (r *Register) identify(ctx context.Context, m Map, node string, stored []paths.Store) {
	for i := range stored {
		s := &stored[i]
		want := wanted(m, s.Name, node)
		switch {
		case ctx.Err() != nil:
			return
		case want == 0 || want == s.CopyID || s.Other:
		case s.CopyID == 0 && m.Unnamed(s.Name, want):
			if err := r.shards.SetCopyID(s.Name, want); err != nil && !fault.Is(err, fault.NoCopy) {
				r.log.Error("directory of a copy does not tell which one it is", zap.String("copy", s.Name), zap.Error(err))
			}
		default:
			r.displace(ctx, m, node, s)
		}
	}
}

// wanted returns the id that the map has for a copy on a node; 0: none.
func wanted(m Map, name, node string) uint64 {
	db, ok := m.DatabaseOf(name)
	if !ok {
		return 0
	}
	c, _ := db.Copy(name, node)
	return c.ID
}

// displace sets the directory of another copy aside, unless the map was behind.
func (r *Register) displace(ctx context.Context, m Map, node string, s *paths.Store) {
	if err := m.CatchUp(ctx); err != nil {
		r.log.Warn("directory of another copy stays: the map may be behind", zap.String("copy", s.Name), zap.Error(err))
		return
	}
	if want := wanted(m, s.Name, node); want != 0 && want != s.CopyID {
		r.SetAside(ctx, s.Name, fmt.Sprintf("it is that of copy %d, and the map has copy %d here", s.CopyID, want))
	}
}
