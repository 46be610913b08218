package node

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/meta"
	"divan/cluster/setup"
	"divan/storage/fault"
	"divan/storage/pause"
)

// systemDatabases makes the system databases when a node or a cluster begins.
type systemDatabases struct {
	name  string // of the node
	alone bool   // it stands alone
	seeds []string
	meta  *meta.Meta
	coord *cluster.Coordinator
	log   *zap.Logger
}

// makeAlone makes the system databases of a server that stands alone, as
// POST /_cluster_setup would.
func (s *systemDatabases) makeAlone(ctx context.Context) error {
	if !s.alone {
		return nil
	}
	return s.make(ctx)
}

func (s *systemDatabases) make(ctx context.Context) error {
	for _, name := range setup.SystemDatabases() {
		err := s.coord.CreateDB(ctx, name, cluster.CreateOptions{})
		switch {
		case err == nil, fault.Is(err, fault.Exists):
		case fault.Is(err, fault.InsufficientStorage): // what is there can be read
			s.log.Warn("a system database is not made", zap.String("database", name), zap.Error(err))
		default:
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// makeInCluster makes the system databases of a cluster that formed by a seed list, where no
// administrator finishes a set-up: the first node of the list does, once all nodes of it
// are members, so that each has its copies. What fails is tried again until ctx ends.
func (s *systemDatabases) makeInCluster(ctx context.Context) error {
	if len(s.seeds) == 0 || s.seeds[0] != s.name {
		return nil
	}
	select {
	case <-s.meta.Ready():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		changed := s.meta.NodesChanged()
		if s.allJoined() {
			if s.try(ctx) {
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

// try makes the system databases; false when that has to be tried again.
func (s *systemDatabases) try(ctx context.Context) bool {
	err := s.make(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("system databases not made yet", zap.Error(err))
	}
	return err == nil
}

// allJoined reports whether every node of the seed list is a member.
func (s *systemDatabases) allJoined() bool {
	for _, seed := range s.seeds {
		if _, member := s.meta.Node(seed); !member {
			return false
		}
	}
	return true
}
