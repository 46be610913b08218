package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// identity holds the data that a node needs before it can talk to the others. It is kept
// in the data directory, apart from the metadata, which comes from the others.
type identity struct {
	Version int    `json:"version"`
	UUID    string `json:"uuid,omitempty"` // of the cluster; empty: belongs to none yet
	Secret  string `json:"secret"`
	// Nodes are the members of the cluster by name, with the addresses of
	// their cluster ports, as they were known last.
	Nodes map[string]string `json:"nodes,omitempty"`
	// Invited says that the node was invited to this cluster and has not joined
	// it yet; Archived, that the metadata from before are out of the way.
	Invited  bool `json:"invited,omitempty"`
	Archived bool `json:"aside,omitempty"`
	// Settings of this node that were made through HTTP before it was invited,
	// and are to be made again.
	Settings map[string]map[string]string `json:"settings,omitempty"`
}

// IdentityFile is the file in the data directory that holds what a node keeps
// about its cluster, the cluster's secret among it.
const IdentityFile = "cluster.json"

const (
	identityVersion = 1
	maxIdentity     = 16 << 20 // bytes
)

// restarts reports whether the node has accepted an invitation, and metadata of its own are
// not out of the way yet, which a restart does.
func (i identity) restarts() bool { return i.Invited && !i.Archived }

func (i identity) clone() identity {
	i.Nodes = maps.Clone(i.Nodes)
	settings := i.Settings
	i.Settings = nil
	for section, keys := range settings {
		if i.Settings == nil {
			i.Settings = map[string]map[string]string{}
		}
		i.Settings[section] = maps.Clone(keys)
	}
	return i
}

// identityStore keeps the identity durably.
type identityStore struct {
	fs    vfs.FS
	dir   string
	now   atomic.Pointer[identity]
	token chan struct{} // held by the one that writes
}

// openIdentity reads the identity of a data directory, and makes one, with a random
// secret, where there is none.
func openIdentity(ctx context.Context, fsys vfs.FS, dir string) (*identityStore, error) {
	s := &identityStore{fs: fsys, dir: dir, token: make(chan struct{}, 1)}
	id, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		s.now.Store(&identity{Version: identityVersion})
		return s, s.update(ctx, func(i *identity) { i.Secret = rand.Text() })
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", IdentityFile, err)
	}
	s.now.Store(&id)
	return s, nil
}

// belongs returns the other members of the cluster that the node of a data
// directory belongs to or was invited to, by name; none when it stands alone.
func belongs(fsys vfs.FS, dir, self string) ([]string, error) {
	s := &identityStore{fs: fsys, dir: dir}
	id, err := s.read()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", IdentityFile, err)
	}
	return id.others(self), nil
}

// others returns the known members besides this node, sorted.
func (i identity) others(self string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i.Nodes)), func(name string) bool { return name == self })
}

// load returns the identity; the caller must not change what is reached through it.
func (s *identityStore) load() identity { return *s.now.Load() }

func (s *identityStore) path() string { return s.fs.PathJoin(s.dir, IdentityFile) }

func (s *identityStore) read() (id identity, err error) {
	f, err := s.fs.Open(s.path())
	if err != nil {
		return identity{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err != nil {
		return identity{}, err
	}
	if err := json.Unmarshal(b, &id); err != nil {
		return identity{}, err
	}
	if id.Version > identityVersion {
		return identity{}, fmt.Errorf("%s is of version %d and this program knows versions up to %d: a newer version of Divan has written it",
			s.path(), id.Version, identityVersion)
	}
	if id.Version != identityVersion || id.Secret == "" {
		return identity{}, fmt.Errorf("version %d is not known to this program, or the secret is missing", id.Version)
	}
	return id, nil
}

// update changes the identity; it returns when the change is durable. Changes
// wait for each other.
func (s *identityStore) update(ctx context.Context, change func(*identity)) error {
	select {
	case s.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.token }()
	next := s.load().clone()
	change(&next)
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", IdentityFile, err)
	}
	if err := s.write(append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", IdentityFile, err)
	}
	s.now.Store(&next)
	return nil
}

// write replaces the file: a crash leaves the one before or the new one.
func (s *identityStore) write(b []byte) error {
	temp := s.path() + ".new"
	f, err := s.fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(temp, s.path()); err != nil {
		return err
	}
	dir, err := s.fs.OpenDir(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// metaDir is where the metadata is kept.
func metaDir(dataDir string) string { return filepath.Join(dataDir, "meta") }
