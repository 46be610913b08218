package view

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"divan/shard/index"
	"divan/storage"
)

// summary holds the position and the blocks of one version of an index, known
// without reading it. It is shared by the queries of that version and goes with
// it.
type summary struct {
	version uint64
	pos     index.Position
	st      state
	asked   atomic.Uint64          // queries
	tops    []atomic.Pointer[tops] // by tree; nil: not read

	mu struct {
		sync.Mutex
		gone bool
		held int64 // bytes of tops, counted in viewIndex.held
	}
}

// summaryOf returns the summary of a snapshot.
func (v *viewIndex) summaryOf(snap *storage.IndexSnapshot) (*summary, error) {
	s, version := v.known.Load(), snap.Version()
	if s != nil && version != 0 && s.version == version {
		s.asked.Add(1)
		return s, nil
	}
	s = &summary{version: version, tops: make([]atomic.Pointer[tops], len(v.trees))}
	var err error
	if s.pos, err = index.ReadPosition(snap); err != nil {
		return nil, err
	}
	if s.st, err = readState(snap, len(v.trees), v.def.collation()); err != nil {
		return nil, err
	}
	if version != 0 {
		v.forget(v.known.Swap(s))
	}
	return s, nil
}

// forget gives back the space of a summary that cannot be found any more.
func (v *viewIndex) forget(s *summary) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.gone = true
	v.held.Add(-s.mu.held)
}

// tops are the blocks of a tree from some level up, in memory.
type tops struct {
	lowest int // level; above maxLevel+1: none
	levels []topLevel
}

// topLevel is one level: the borders and entries one behind the other, and where
// each begins.
type topLevel struct {
	text []byte
	at   []uint32 // border and entry of the first block, of the second, …, the end
}

func (l *topLevel) blocks() int         { return len(l.at) / 2 }
func (l *topLevel) border(i int) []byte { return l.text[l.at[2*i]:l.at[2*i+1]:l.at[2*i+1]] }
func (l *topLevel) entry(i int) []byte  { return l.text[l.at[2*i+1]:l.at[2*i+2]:l.at[2*i+2]] }

// find returns the first block that begins at or behind a key.
func (l *topLevel) find(key []byte) int {
	lo, hi := 0, l.blocks()
	for lo < hi {
		if mid := (lo + hi) / 2; bytes.Compare(l.border(mid), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Reading blocks into memory pays when so many queries of a version share them: one
// is read in the time that a query saves by topsWorth of them. Small ones take
// some 60 bytes.
const (
	topsWorth = 16
	maxTops   = 1 << 15  // blocks of the lowest level, about
	topsBytes = 4 << 20  // of a tree
	heldBytes = 64 << 20 // of all indexes of a node
)

// topsOf returns the blocks of a tree when they are in memory, or worth reading;
// otherwise nil.
func (v *viewIndex) topsOf(s *summary, snap *storage.IndexSnapshot, t *tree) (*tops, error) {
	of := &s.st.trees[t.number]
	if !s.st.blocks || s.version == 0 {
		return nil, nil //nolint:nilnil // there are none
	}
	if known := s.tops[t.number].Load(); known != nil {
		return known, nil
	}
	lowest, blocks := 1, of.rows>>fanoutBits
	for blocks > maxTops {
		lowest, blocks = lowest+1, blocks>>fanoutBits
	}
	if s.asked.Load() < 1+blocks/topsWorth {
		return nil, nil //nolint:nilnil // not yet
	}
	read, size, err := readTops(snap, t, min(lowest, of.height+1), of.height+1)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.gone || s.tops[t.number].Load() != nil {
		return read, nil
	}
	if v.held.Add(size) > heldBytes {
		v.held.Add(-size)
		read, size = noTops(), 0
	}
	s.mu.held += size
	s.tops[t.number].Store(read)
	return read, nil
}

// noTops are those of a tree whose blocks are not held.
func noTops() *tops { return &tops{lowest: maxLevel + 2} }

// readTops reads the blocks of some levels.
func readTops(snap *storage.IndexSnapshot, t *tree, lowest, highest int) (out *tops, size int64, err error) {
	from, to := appendBlockKey(nil, t.number, lowest, nil), appendBlockKey(nil, t.number, highest+1, nil)
	it, err := snap.Iterate(from, to)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	out = &tops{lowest: lowest, levels: make([]topLevel, highest+1-lowest)}
	for ok := it.First(); ok; ok = it.NextRewritten() {
		v, err := it.Value()
		if err != nil {
			return nil, 0, err
		}
		l := &out.levels[int(it.Key()[treePrefix])-lowest]
		l.at = append(l.at, uint32(len(l.text)))
		l.text = append(l.text, it.Key()[blockPrefix:]...)
		l.at = append(l.at, uint32(len(l.text)))
		l.text = append(l.text, v...)
		if size += int64(len(it.Key()) + len(v) + 8); size > topsBytes {
			return noTops(), 0, it.Err()
		}
	}
	for i := range out.levels {
		l := &out.levels[i]
		l.text, l.at = slices.Clip(l.text), slices.Clip(append(l.at, uint32(len(l.text))))
	}
	return out, size, it.Err()
}

// addTop is add for a level in memory.
func (s *summer) addTop(level int, lo, hi []byte) error {
	l := &s.tops.levels[level-s.tops.lowest]
	i, n := l.find(lo), l.blocks()
	if i == n || !before(l.border(i), hi) {
		return s.add(level-1, lo, hi)
	}
	if border := l.border(i); bytes.Compare(lo, border) < 0 {
		if err := s.add(level-1, lo, border); err != nil {
			return err
		}
	}
	for ; i < n && before(l.border(i), hi); i++ {
		var end []byte
		if i+1 < n {
			end = l.border(i + 1)
		}
		if hi != nil && (end == nil || bytes.Compare(end, hi) > 0) {
			return s.add(level-1, l.border(i), hi) // it reaches beyond the range
		}
		if err := s.b.decode(l.entry(i), len(s.t.reducers)); err != nil {
			return err
		}
		switch {
		case s.reducer < 0 || s.b.rows == 0:
			s.rows += s.b.rows
		case s.b.states[s.reducer] != nil:
			s.rows += s.b.rows
			s.states = append(s.states, s.b.states[s.reducer])
		default:
			if err := s.add(level-1, l.border(i), end); err != nil {
				return err
			}
		}
	}
	return nil
}
