package instance

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// files are the files of an instance as they are found before Pebble opens it: damage is set right
// or told, and the end of a log that Pebble gives up is looked at.
type files struct {
	shared  *Shared
	dir     string
	log     *zap.Logger
	givenUp atomic.Pointer[GivenUp]
}

// syncLogs makes durable what the logs hold. An instance that takes writes flushes
// it when it is opened.
func (s *files) syncLogs() error {
	names, err := s.shared.FS.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !IsLog(name) {
			continue
		}
		f, err := s.shared.FS.Open(s.shared.FS.PathJoin(s.dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// damaged returns the tables that are known to be damaged: see Mending.of.
func (s *files) damaged() (all, untried, due []string) {
	return s.shared.Mending.of(s.shared.FS, s.dir)
}

// mendTables sets right what can be of the tables that are known to be damaged, and reports whether some were and
// all are whole now.
func (s *files) mendTables(options func() *pebble.Options) (righted bool) {
	s.shared.Mending.forgetGone(s.shared.FS)
	_, _, due := s.damaged()
	for _, path := range due {
		whole, err := s.mendTable(path, options())
		if err != nil {
			s.log.Error("a damaged file could not be set right", zap.String("file", path), zap.Error(err))
		}
		s.shared.Mending.tried(path, whole, err)
	}
	left, _, _ := s.damaged()
	return len(due) > 0 && len(left) == 0
}

// write sets bits of a log or a manifest right, durably, and says so. It does so in place: each byte is written
// whole or not at all, and checkpoints have copies of these files.
func (s *files) write(path string, flips []flip) (err error) {
	if len(flips) == 0 {
		return nil
	}
	f, err := s.shared.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, fl := range flips {
		var one [1]byte
		if _, err := f.ReadAt(one[:], fl.at); err != nil {
			return err
		}
		one[0] ^= fl.mask
		if _, err := f.WriteAt(one[:], fl.at); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	s.told(path, flips)
	return nil
}

// told counts bits that were set right, and says which.
func (s *files) told(path string, flips []flip) {
	for _, fl := range flips {
		s.shared.Mending.corrected.Add(1)
		s.log.Error("a bit of a file was another one than its checksum says, and was set right",
			zap.String("file", path), zap.Int64("offset", fl.at), zap.Uint8("bit", fl.mask))
	}
}
