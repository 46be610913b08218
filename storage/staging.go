package storage

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"

	"divan/storage/identity"
	"divan/storage/instance"
)

// staging is the folder of stores that were dropped: they leave their place at once, and the disk
// when it is swept. Directories of work that a crash ends lie there, too. It is safe for concurrent use.
type staging struct {
	env     *environment
	small   *smallHost
	due     chan struct{} // something lies in the folder; space for one
	unswept atomic.Bool   // and stays there: it could not be removed

	held struct { // directories that are in use: see scratch
		sync.Mutex
		names map[string]struct{}
	}
}

func newStaging(env *environment, small *smallHost) *staging {
	s := &staging{env: env, small: small, due: make(chan struct{}, 1)}
	s.held.names = map[string]struct{}{}
	return s
}

// scratch makes a directory in the folder that is swept after remove, or after a crash.
func (s *staging) scratch() (dir string, remove func() error, err error) {
	var unique [12]byte
	_, _ = rand.Read(unique[:]) // never fails
	name := hex.EncodeToString(unique[:])
	s.held.Lock()
	s.held.names[name] = struct{}{}
	s.held.Unlock()
	dir = s.env.path(stagingDir, name)
	remove = func() error {
		s.held.Lock()
		delete(s.held.names, name)
		s.held.Unlock()
		return s.env.o.FS.RemoveAll(dir)
	}
	if err := s.env.o.FS.MkdirAll(dir, 0o755); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

func (s *staging) isHeld(name string) bool {
	s.held.Lock()
	defer s.held.Unlock()
	_, held := s.held.names[name]
	return held
}

// prepare makes the folder; what lies in it is left to sweep.
func (s *staging) prepare() error {
	s.wake()
	return s.env.dirs.Ensure(s.env.path(stagingDir))
}

func (s *staging) wake() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// add moves a directory to the folder, durably.
func (s *staging) add(name string) error {
	var unique [12]byte
	_, _ = rand.Read(unique[:]) // never fails
	path, fs := s.env.path(name), s.env.o.FS
	if err := fs.Rename(path, s.env.path(stagingDir, hex.EncodeToString(unique[:]))); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	// What is swept before that may be there again after a crash, without what it had.
	if err := instance.SyncDir(fs, fs.PathDir(path)); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	s.wake()
	return nil
}

// sweep removes dropped stores from the disk.
func (s *staging) sweep() {
	names, err := s.env.o.FS.List(s.env.path(stagingDir))
	names = slices.DeleteFunc(names, s.isHeld)
	for some := range slices.Chunk(names, maxRemoved) {
		err = errors.Join(err, s.remove(some))
	}
	s.unswept.Store(err != nil)
	if err != nil {
		s.env.log.Warn("removing dropped stores failed", zap.Error(err))
	}
}

// maxRemoved is how many stores go together.
const maxRemoved = 256

// remove removes directories of dropped stores. That of one that may be small names what it has
// among the small ones, and goes after that.
func (s *staging) remove(names []string) (err error) {
	var dirs []string
	var uuids [][16]byte
	fs := s.env.o.FS
	for _, name := range names {
		dir := s.env.path(stagingDir, name)
		switch id, _, e2 := identity.Read(fs, dir); {
		case e2 == nil && id.Small:
			dirs, uuids = append(dirs, dir), append(uuids, id.UUID)
		case errors.Is(e2, syscall.EIO) || errors.Is(e2, syscall.EMFILE) || errors.Is(e2, syscall.ENFILE):
			err = errors.Join(err, e2) // what it names would stay
		default:
			err = errors.Join(err, fs.RemoveAll(dir))
		}
	}
	if len(uuids) == 0 {
		return err
	}
	if e2 := s.small.remove(uuids...); e2 != nil {
		return errors.Join(err, e2)
	}
	for _, dir := range dirs {
		err = errors.Join(err, fs.RemoveAll(dir))
	}
	return err
}
