package meta

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"divan/storage/pause"
)

// The state is also kept outside of its directory, for the day when that is gone: in two files that
// are written in turn, so that one of them is whole after any failure. Each is a snapshot with its
// SHA-256 behind it. They are read only to make the metadata again, and to find out that the log
// has lost its end.

// copyFiles are their names.
func copyFiles() [2]string { return [2]string{"metadata-1", "metadata-2"} }

const (
	// copyEvery is how long changes are gathered for a copy.
	copyEvery = time.Second
	// copyShare is how many times as long as writing a copy takes the pause before
	// the next one is: with very many databases it is megabytes.
	copyShare = 20
)

// copier writes the copies.
type copier struct {
	dir  string
	next int    // of the two files
	done uint64 // index of the state that was written last
}

// copyKeeper writes copies of what was applied.
type copyKeeper struct {
	copier
	fsm *stateMachine
	log *zap.Logger
}

// keep writes copies until ctx ends.
func (c *copyKeeper) keep(ctx context.Context) {
	if _, at := readCopies(c.dir); at >= 0 {
		c.next = 1 - at
	}
	for took := time.Duration(0); ; {
		select {
		case <-c.fsm.toCopy:
		case <-ctx.Done():
			c.now() // what was gathered
			return
		}
		_ = pause.For(ctx, max(copyEvery, copyShare*took)) // the loop looks at ctx
		began := time.Now()
		c.now()
		took = time.Since(began)
	}
}

// now writes a copy unless nothing has changed.
func (c *copyKeeper) now() {
	c.fsm.mu.Lock()
	s := &snapshot{state: c.fsm.load(), tombstones: c.fsm.tombstones.Load().clone()}
	c.fsm.mu.Unlock()
	if s.state.index == c.done || s.state.uuid == "" {
		return
	}
	if err := c.write(s); err != nil {
		c.log.Warn("no copy of the metadata was kept", zap.Error(err))
	}
}

func (c *copier) write(s *snapshot) (err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, copyFiles()[c.next]), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	for _, to := range []*bufio.Writer{bufio.NewWriterSize(f, snapshotBuffer), bufio.NewWriterSize(sum, snapshotBuffer)} {
		if err := errors.Join(s.write(to), to.Flush()); err != nil {
			return err
		}
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	c.next, c.done = 1-c.next, s.state.index
	return nil
}

// readCopies returns the newest sound copy and the place of its file; nil and -1
// when there is none.
func readCopies(dir string) (best *snapshot, at int) {
	at = -1
	for i, name := range copyFiles() {
		if s, err := readCopy(filepath.Join(dir, name)); err == nil && (best == nil || s.state.index > best.state.index) {
			best, at = s, i
		}
	}
	return best, at
}

func readCopy(path string) (*snapshot, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	end := len(text) - sha256.Size
	if end < 0 {
		return nil, errMalformed
	}
	if sum := sha256.Sum256(text[:end]); !bytes.Equal(sum[:], text[end:]) {
		return nil, fmt.Errorf("%w: the checksum of %s", errMalformed, path)
	}
	s, t, err := readSnapshot(bufio.NewReader(bytes.NewReader(text[:end])))
	if err != nil {
		return nil, err
	}
	return &snapshot{state: s, tombstones: t}, nil
}

// ErrDamaged is the cause of an error that says that metadata on disk cannot be
// used. Compare with errors.Is.
var ErrDamaged = errors.New("the metadata are damaged")

// verify refuses a directory of metadata that Raft or bbolt would not survive,
// or that would make this node forget what it had agreed to.
func (b *bootstrap) verify() error {
	s := look(b.opts.Dir, false)
	if s.empty() && len(s.problems) == 0 {
		return nil
	}
	if b.group.lone && len(s.problems) == 0 {
		// Nothing else tells that a log has lost its end. In a group of several the
		// others have it; and one that joined again begins anew.
		if c, _ := readCopies(b.opts.CopyDir); c != nil && c.state.index > s.last && s.belongs(c.state) {
			s.problems = append(s.problems, s.lostEnd(c.state))
		}
	}
	if len(s.problems) == 0 {
		return nil
	}
	return damage(b.opts.Dir, s.problems)
}

// lostEnd says that a copy of the state has more than the log.
func (s *survey) lostEnd(c *state) string {
	return fmt.Sprintf("%s ends with entry %d, and entry %d was agreed on", logFile, s.last, c.index)
}

// belongs reports whether a state is one of the group that the directory is of.
func (s *survey) belongs(c *state) bool {
	return string(s.stable[string(groupIDKey())]) == c.groupID()
}

func damage(dir string, problems []string) error {
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("%w: %s: %s%s", ErrDamaged, dir, problems[0], more)
}

// exists reports whether a file or directory is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
