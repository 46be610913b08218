package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/httpapi/auth"
	"divan/shard/view/reduce"
	"divan/storage/compression"
)

// base holds the settings, the name and the log of a node: they are there before it opens
// its data directory.
type base struct {
	cfg    Config
	name   string
	logger *logger
	log    *zap.Logger
	config *config.Holder
}

// configure reads the settings and opens the log.
func (b *base) configure(ctx context.Context) error {
	flags, err := b.cfg.flags()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(b.cfg.DataDir)
	if err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	options := config.Options{
		Files: b.cfg.files(), Environ: b.cfg.Environ, Flags: flags, DataDir: dir, Logger: b.cfg.Logger,
		Hash: func(password string) (string, error) {
			s := b.config.Load().ChttpdAuth
			return auth.HashAdmin(ctx, password, s.PasswordScheme, s.PBKDF2PRF, s.Iterations)
		},
		Verify: func(stored, password string) bool { return auth.VerifyAdmin(ctx, stored, password) },
	}
	first, err := config.New(options)
	if err != nil {
		return err
	}
	if err := b.decideAlone(first.Load(), flags); err != nil {
		return err
	}
	if b.logger, err = b.cfg.openLog(first.Load().Log); err != nil {
		return err
	}
	b.log = b.logger.Logger
	// Once more, now that there is a log that can say which values it ignores.
	options.Logger = b.log.Named("config")
	if b.config, err = config.New(options); err != nil {
		return errors.Join(err, b.logger.close())
	}
	b.logger.follow(b.config)
	return nil
}

// decideAlone settles whether the node stands alone, and its name. A node that
// belongs to a cluster goes on belonging to it.
func (b *base) decideAlone(s *config.Snapshot, flags config.Values) error {
	if b.name = s.Cluster.NodeName; b.name == "" {
		b.name = defaultName
	}
	others, err := belongs(b.cfg.fileSystem(), b.cfg.DataDir, b.name)
	switch {
	case err != nil:
		return err
	case !alone(s):
	case len(others) == 0:
		put(flags, "couchdb", "single_node", "true")
	case s.CouchDB.SingleNode:
		return fmt.Errorf("[couchdb] single_node is true, and the node belongs to a cluster with %s", strings.Join(others, ", "))
	default:
		put(flags, "couchdb", "single_node", "false")
	}
	return nil
}

// alone reports whether nothing in the configuration speaks of other nodes: then
// the node is a server by itself and needs no set-up.
func alone(s *config.Snapshot) bool {
	if _, said := s.Get("couchdb", "single_node"); said {
		return s.CouchDB.SingleNode
	}
	for _, key := range []string{"seedlist", "secret", "port", "bind_address", "advertise"} {
		if value, _ := s.Get("cluster", key); value != "" {
			return false
		}
	}
	return true
}

// defaultName is the name of a node that was given none: it stands alone, so
// no other node has to find it.
const defaultName = "divan@127.0.0.1"

// compression returns how tables are compressed as it is set now.
func (b *base) compression() compression.Method {
	return compression.Named(b.config.Load().CouchDB.FileCompression)
}

// reduceLimit is [query_server_config] reduce_limit.
func (b *base) reduceLimit() reduce.Limit {
	s := b.config.Load().Limits
	return reduce.Limit{Off: s.ReduceLimit != "true", Threshold: int(s.ReduceThreshold), Ratio: s.ReduceRatio}
}

// dial connects to the HTTP interface of another server.
func (b *base) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return b.cfg.network().Dial(ctx, address)
}
