package view

import (
	"bytes"
	"errors"
	"sync"

	"divan/shard/view/reduce"
	"divan/storage"
)

// reader is the source of rows and blocks: a snapshot, or a batch.
type reader interface {
	Iterate(lo, hi []byte) (*storage.IndexIterator, error)
}

// summer adds up ranges of rows of one tree.
type summer struct {
	from     reader
	t        *tree
	reducer  int // -1: only rows are counted
	function reduce.Function
	height   int   // of blocks; below 0: there are none
	tops     *tops // upper levels; nil: they are read

	rowIt, blockIt *storage.IndexIterator // opened when they are needed
	rowPrefix      []byte
	blockPrefix    []byte // level 0 in its last byte

	*scratch
	rows   uint64
	failed bool // the reduce function, the error is its

	// reached is the end of the rows that were read last; nil: none were. The
	// iterator stands behind it, some says whether on a row.
	reached []byte
	some    bool
}

// scratch is memory of a summer that another one can use after it.
type scratch struct {
	states [][]byte // in the order of their keys
	bytes  arena
	list   []reduce.Row
	b      block
	lo     []byte
}

// scratchBytes is how much of a scratch's texts is worth keeping.
const scratchBytes = 128 << 10

// release makes the memory another one's, unless it is large.
func (s *scratch) release(to *sync.Pool) {
	size := 0
	for _, chunk := range s.bytes.chunks {
		size += cap(chunk)
	}
	if size > scratchBytes {
		return
	}
	clear(s.list[:cap(s.list)])
	clear(s.states[:cap(s.states)])
	to.Put(s)
}

// newSummer returns a summer; Close it.
func newSummer(from reader, t *tree, reducer, height int) *summer {
	return &summer{
		scratch: &scratch{}, from: from, t: t, reducer: reducer, height: height,
		rowPrefix: appendTree(nil, spaceRows, t.number), blockPrefix: appendBlockKey(nil, t.number, 0, nil),
	}
}

// openRows opens the iterator over rows.
func (s *summer) openRows() (err error) {
	if s.rowIt == nil {
		s.rowIt, err = s.from.Iterate(s.rowPrefix, keyEnd(s.rowPrefix))
	}
	return err
}

// openBlocks opens the iterator over blocks.
func (s *summer) openBlocks() (err error) {
	if s.blockIt == nil {
		blocks := s.blockPrefix[:treePrefix]
		s.blockIt, err = s.from.Iterate(blocks, keyEnd(blocks))
	}
	return err
}

// Close gives the iterators back.
func (s *summer) Close() (err error) {
	for _, it := range [...]**storage.IndexIterator{&s.rowIt, &s.blockIt} {
		if *it != nil {
			err = errors.Join(err, (*it).Close())
			*it = nil
		}
	}
	return err
}

// begin forgets what was added up.
func (s *summer) begin() {
	s.rows, s.states, s.list = 0, s.states[:0], s.list[:0]
	s.failed, s.reached = false, nil
	s.bytes.reset()
}

// sum adds up the rows with lo <= key < hi, given behind the tree; hi nil is the
// end. The states are there until the next call.
func (s *summer) sum(lo, hi []byte) error {
	s.begin()
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	if s.height < 0 {
		return s.addRows(lo, hi)
	}
	return s.add(s.height+1, lo, hi)
}

// count returns the number of rows with lo <= key < hi.
func (s *summer) count(lo, hi []byte) (uint64, error) {
	reducer := s.reducer
	s.reducer = -1
	err := s.sum(lo, hi)
	s.reducer = reducer
	return s.rows, err
}

// add adds the blocks of a level that lie within a range, and what is before
// and behind them from the level below.
func (s *summer) add(level int, lo, hi []byte) error {
	if level == 0 {
		return s.addRows(lo, hi)
	}
	if s.tops != nil && level >= s.tops.lowest {
		return s.addTop(level, lo, hi)
	}
	if err := s.openBlocks(); err != nil {
		return err
	}
	if !s.seek(level, lo) || !before(s.border(), hi) {
		return s.add(level-1, lo, hi)
	}
	border := bytes.Clone(s.border())
	if bytes.Compare(lo, border) < 0 {
		if err := s.add(level-1, lo, border); err != nil {
			return err
		}
		s.seek(level, border)
	}
	for {
		v, err := s.blockIt.Value()
		if err != nil {
			return err
		}
		if err := s.b.decode(v, len(s.t.reducers)); err != nil {
			return err
		}
		state, known := s.take()
		last := !s.blockIt.NextRewritten() || int(s.blockIt.Key()[treePrefix]) != level
		if err := s.blockIt.Err(); err != nil {
			return err
		}
		var end []byte
		if !last {
			end = bytes.Clone(s.border())
		}
		if last && hi != nil || !last && !before(end, hi) && !bytes.Equal(end, hi) {
			return s.add(level-1, border, hi) // it reaches beyond the range
		}
		if known {
			s.rows += s.b.rows
			if state != nil {
				s.states = append(s.states, state)
			}
		} else {
			if err := s.add(level-1, border, end); err != nil {
				return err
			}
			if !last {
				s.seek(level, end)
			}
		}
		if last || bytes.Equal(end, hi) {
			return nil
		}
		border = end
	}
}

// take copies the state of the block; known is false when there should be one
// and is not.
func (s *summer) take() (state []byte, known bool) {
	if s.reducer < 0 || s.b.rows == 0 {
		return nil, true
	}
	state = s.b.states[s.reducer]
	if state == nil {
		return nil, false
	}
	return s.bytes.copy(state), true
}

// before reports whether a key is below the end of a range.
func before(key, hi []byte) bool { return hi == nil || bytes.Compare(key, hi) < 0 }

// seek moves to the first block of a level that begins at or behind lo.
func (s *summer) seek(level int, lo []byte) bool {
	s.blockPrefix[treePrefix] = byte(level)
	s.lo = append(append(s.lo[:0], s.blockPrefix...), lo...)
	return s.blockIt.SeekGE(s.lo) && int(s.blockIt.Key()[treePrefix]) == level
}

// border is where the block begins on which the iterator stands.
func (s *summer) border() []byte { return s.blockIt.Key()[blockPrefix:] }

// reduceRows is how many rows are reduced at once where there are no blocks.
const reduceRows = 1024

// addRows reads the rows of a range.
func (s *summer) addRows(lo, hi []byte) error {
	if err := s.openRows(); err != nil {
		return err
	}
	s.lo = append(append(s.lo[:0], s.rowPrefix...), lo...)
	s.list = s.list[:0]
	s.reached = hi
	for s.some = s.rowIt.SeekGE(s.lo); s.some; s.some = s.rowIt.Next() {
		key := s.rowIt.Key()[treePrefix:]
		if !before(key, hi) {
			break
		}
		s.rows++
		if s.reducer < 0 {
			continue
		}
		v, err := s.rowIt.Value()
		if err != nil {
			return err
		}
		if err := s.addRow(key, v); err != nil {
			return err
		}
	}
	if err := s.rowIt.Err(); err != nil {
		return err
	}
	return s.reduceList()
}

// addRow adds one row, which is copied.
func (s *summer) addRow(key, value []byte) error {
	r, err := s.t.decodeRow(s.bytes.copy(key), s.bytes.copy(value))
	if err != nil {
		return err
	}
	if s.list = append(s.list, r); len(s.list) >= reduceRows {
		return s.reduceList()
	}
	return nil
}

// reduceList makes a state of the rows collected.
func (s *summer) reduceList() error {
	if len(s.list) == 0 {
		return nil
	}
	state, err := s.function.Reduce(nil, s.list)
	s.states, s.list, s.failed = append(s.states, state), s.list[:0], err != nil
	return err
}

// state appends the state of everything that was added up.
func (s *summer) state(dst []byte) ([]byte, error) {
	if len(s.states) == 1 {
		return append(dst, s.states[0]...), nil
	}
	dst, err := s.function.Rereduce(dst, s.states)
	s.failed = err != nil
	return dst, err
}
