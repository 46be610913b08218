package meta

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"divan/cluster/meta/boltfile"
	"divan/cluster/meta/checksum"
)

// survey is the content of a directory of metadata, read without Raft and without bbolt, which both
// end the process when a file is not what they expect.
type survey struct {
	problems []string
	snapshot *raft.SnapshotMeta // the newest sound one
	state    *state             // of the snapshot, with the entries behind it that follow one another
	marks    *tombstones
	stable   map[string][]byte
	entries  []*raft.Log // sound ones, in order; without their data unless they were asked for
	last     uint64      // number of the last entry, or of what the snapshot has
}

func (s *survey) problemf(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// empty reports whether Raft would find nothing here: a node that was refused to
// found a group leaves a file with its name.
func (s *survey) empty() bool { return s.snapshot == nil && len(s.entries) == 0 && s.term() == 0 }

// term returns the term that the node has voted in.
func (s *survey) term() uint64 {
	b := s.stable[string(termKey())]
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// look reads a directory. With build it also puts the state together.
func look(dir string, build bool) *survey {
	s := &survey{stable: map[string][]byte{}, state: newState(), marks: newTombstones()}
	s.readSnapshots(filepath.Join(dir, "snapshots"), build)
	if s.snapshot != nil {
		s.last = s.snapshot.Index
	}
	s.readLog(filepath.Join(dir, logFile), build)
	s.connect(build)
	return s
}

// readSnapshots verifies each snapshot and keeps the newest sound one.
func (s *survey) readSnapshots(dir string, build bool) {
	names, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.problemf("snapshots: %v", err)
		}
		return
	}
	for _, entry := range slices.Backward(names) {
		if !entry.IsDir() || strings.HasSuffix(entry.Name(), ".tmp") { // that was never finished
			continue
		}
		meta, state, marks, err := readSnapshotDir(filepath.Join(dir, entry.Name()), build)
		if err == nil && meta.ID != entry.Name() {
			err = fmt.Errorf("it says that it is %s", meta.ID)
		}
		if err != nil {
			s.problemf("snapshot %s: %v", entry.Name(), err)
			continue
		}
		if s.snapshot == nil || meta.Index > s.snapshot.Index {
			s.snapshot = meta
			if build {
				s.state, s.marks = state, marks
			}
		}
	}
}

// readSnapshotDir verifies a snapshot as Raft keeps it: its state, and what is
// said of it.
func readSnapshotDir(dir string, build bool) (*raft.SnapshotMeta, *state, *tombstones, error) {
	text, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err != nil {
		return nil, nil, nil, err
	}
	var said struct {
		raft.SnapshotMeta
		CRC []byte
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, nil, nil, fmt.Errorf("meta.json: %w", err)
	}
	if !strings.HasPrefix(said.ID, fmt.Sprintf("%d-%d-", said.Term, said.Index)) || !plausible(&said.SnapshotMeta) {
		return nil, nil, nil, errors.New("meta.json: not what it must be")
	}
	f, err := os.Open(filepath.Join(dir, "state.bin"))
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	n, err := io.Copy(sum, f)
	if err == nil && (n != said.Size || string(sum.Sum(nil)) != string(said.CRC)) {
		err = errors.New("state.bin: its checksum is wrong")
	}
	if err != nil || !build {
		return &said.SnapshotMeta, nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, nil, err
	}
	state, marks, err := readSnapshot(bufio.NewReaderSize(f, snapshotBuffer))
	return &said.SnapshotMeta, state, marks, err
}

// plausible looks at what Raft keeps without a checksum. The address of a server
// is its name.
func plausible(m *raft.SnapshotMeta) bool {
	servers := m.Configuration.Servers
	odd := slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) != string(s.Address) || s.ID == "" })
	alone := len(servers) == 1 && servers[0].Suffrage == raft.Voter
	return m.Version == raft.SnapshotVersionMax && !odd && (alone || len(servers) > 1)
}

// readLog reads the file of the log. Entries that cannot be read are problems.
func (s *survey) readLog(path string, keep bool) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if s.snapshot != nil {
			s.problemf("%s is missing", logFile)
		}
		return
	}
	if err != nil {
		s.problemf("%v", err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		s.problemf("%v", err)
		return
	}
	if info.Size() == 0 { // made, and nothing else
		return
	}
	boltfile.Read(f, info.Size(), []string{"conf", "logs"}, boltfile.Visitor{
		Problem: func(text string) { s.problemf("%s: %s", logFile, text) },
		Pair: func(bucket string, key, value []byte) {
			if bucket == "logs" {
				s.readEntry(key, value, keep)
				return
			}
			value, err := checksum.VerifyValue(key, value)
			if err != nil {
				s.problemf("%s: %v", logFile, err)
				return
			}
			s.stable[string(key)] = slices.Clone(value)
		},
	})
	if _, all := s.stable[string(checksum.LastKey())]; !all && len(s.stable)+len(s.entries) > 0 {
		s.problemf("%s: values are missing", logFile)
	}
}

func (s *survey) readEntry(key, value []byte, keep bool) {
	l := &raft.Log{}
	err := codec.NewDecoderBytes(value, &codec.MsgpackHandle{}).Decode(l)
	switch {
	case err != nil:
	case len(key) != 8 || binary.BigEndian.Uint64(key) != l.Index:
		err = errors.New("it has another number")
	default:
		err = checksum.VerifyEntry(l)
	}
	if err == nil && l.Type == raft.LogCommand {
		_, err = decodeCommand(l.Data)
	}
	if err != nil {
		s.problemf("%s: entry %x: %v", logFile, key, err)
		return
	}
	if !keep {
		l.Data = nil
	}
	s.entries = append(s.entries, l)
}

// connect looks whether the entries follow one another, from the snapshot or from
// the beginning on, and applies those that do to the state.
func (s *survey) connect(build bool) {
	next := uint64(1)
	if s.snapshot != nil {
		next = s.snapshot.Index + 1
	}
	for i, l := range s.entries {
		if i > 0 && l.Index != s.entries[i-1].Index+1 {
			s.problemf("%s: entry %d comes after %d", logFile, l.Index, s.entries[i-1].Index)
		}
	}
	if len(s.entries) > 0 && s.entries[0].Index > next {
		s.problemf("%s begins with entry %d, and the snapshot before it is missing", logFile, s.entries[0].Index)
	}
	if n := len(s.entries); n > 0 {
		s.last = max(s.last, s.entries[n-1].Index)
	}
	if build {
		s.state = applyEntries(s.state, s.marks, s.entries, next)
	}
}

// applyEntries applies entries from a number on to a state, up to the first that is
// missing. What this node does not know to be committed in a group of several is
// among them.
func applyEntries(s *state, marks *tombstones, entries []*raft.Log, next uint64) *state {
	now := *s
	for _, l := range entries {
		if l.Index < next {
			continue
		}
		if l.Index > next {
			break
		}
		next++
		if l.Type != raft.LogCommand {
			continue
		}
		c, err := decodeCommand(l.Data)
		if err != nil {
			break
		}
		now.index, now.term = l.Index, l.Term
		now.clusterVersion = max(now.clusterVersion, neededVersion(c.Command))
		now.apply(c, marks, &effects{})
	}
	return &now
}

// termKey is where Raft has its term.
func termKey() []byte { return []byte("CurrentTerm") }
