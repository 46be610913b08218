package view

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"divan/shard/view/reduce"
	"divan/storage/fault"
)

// Blocks are the aggregates of a tree of rows: they answer how many rows a range
// has, and what its reduce functions give, without reading them.
//
// The rows are cut into blocks on several levels. A row begins a block of level
// l, and of those below, when the hash of its key says so: one in 32 rows one of
// level 1, one in 32 of these one of level 2, and so on; the first block of each
// level, the root, begins at the empty key. So borders depend on the rows alone
// and move no other border. There are blocks up to the first level that has
// nothing but its root, which sums up the tree.
//
// Each block has an entry: the number of its rows, and the state of each reduce
// function over them. An entry without a state, where the function failed, makes
// the reader go down a level, so that the failure is that of the query that
// needs it.
//
//	B1  while state.blocks, the entry of each block agrees with the rows between
//	    its border and the next of its level, and there is an entry for each
//	    border and root up to level height+1, and no other.
//
// Package storage counts documents in blocks chosen the same way. What is summed
// there can be added to and subtracted from, so that a change is a merge operand
// and two levels, of which one is in memory, are enough; a border that stays when
// its document goes costs it nothing. A reduce function cannot take back a
// value: here the block of each changed row is made anew from what is in it, and
// borders go with their rows. The two share the idea and no code.
const (
	fanoutBits = 5 // 1<<fanoutBits rows, or blocks, are in a block on average
	maxLevel   = 12
)

// levelOf is the highest level at which a row begins a block; 0: none. It is
// part of the format.
func levelOf(key []byte) int {
	h := xxhash.Sum64(key)
	level := 0
	for h&(1<<fanoutBits-1) == 0 && level < maxLevel {
		level++
		h >>= fanoutBits
	}
	return level
}

// block is the entry of a block. The states alias the encoded entry.
type block struct {
	rows   uint64
	states [][]byte // by reducer; nil: not known
}

func appendBlock(dst []byte, rows uint64, states [][]byte) []byte {
	dst = binary.AppendUvarint(dst, rows)
	for _, s := range states {
		if s == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(s))+1)
		dst = append(dst, s...)
	}
	return dst
}

// decode reads an entry with so many states into b.
func (b *block) decode(v []byte, states int) error {
	n, used := binary.Uvarint(v)
	if used <= 0 {
		return errBlock()
	}
	b.rows, v = n, v[used:]
	b.states = b.states[:0]
	for range states {
		size, used := binary.Uvarint(v)
		if used <= 0 || size > uint64(len(v)-used)+1 {
			return errBlock()
		}
		v = v[used:]
		if size == 0 {
			b.states = append(b.states, nil)
			continue
		}
		b.states = append(b.states, v[:size-1:size-1])
		v = v[size-1:]
	}
	return nil
}

func errBlock() error { return fault.New(fault.Corruption, "The index has a malformed block.") }

// collector makes the entry of one block from what is in it.
type collector struct {
	t         *tree
	functions []reduce.Function
	failed    []int // by reducer: how often, in this update
	rows      uint64
	list      []reduce.Row // of a block of level 1
	parts     [][][]byte   // of a block above, or of a large one, by reducer
	unknown   []bool       // by reducer: a part has no state
	held      int          // bytes of list and parts
	bytes     arena
	states    [][]byte
	out       []byte
}

func newCollector(ctx context.Context, t *tree) *collector {
	n := len(t.reducers)
	functions := make([]reduce.Function, n)
	for i := range functions {
		functions[i] = t.reducers[i].bind(ctx)
	}
	return &collector{t: t, functions: functions, failed: make([]int, n), parts: make([][][]byte, n), unknown: make([]bool, n), states: make([][]byte, n), out: []byte{}}
}

// maxFailures is how often a reduce function may fail in one update before it is
// no longer called: it may have taken the longest time that it may take.
const maxFailures = 8

func (c *collector) reset() {
	c.rows, c.list, c.held = 0, c.list[:0], 0
	c.forget()
	for i := range c.parts {
		c.parts[i], c.unknown[i] = c.parts[i][:0], false
	}
}

// Bounds of what a block holds in memory, and of a state that is stored. The average
// block has 32 rows or blocks, but each may have 8 MB.
const (
	foldBytes  = 4 << 20
	stateBytes = 1 << 20
)

// forget lets go of the texts; the memory of a large block is not kept.
func (c *collector) forget() {
	if c.bytes.reset(); c.bytes.bytes() > foldBytes {
		c.bytes = arena{}
	}
}

// foldsWith reports whether what the block has is summed up before n more bytes come.
func (c *collector) foldsWith(n int) bool { return c.held > 0 && c.held+n > foldBytes }

// fold sums up what the block has so far: what is left is one state by reducer.
func (c *collector) fold() {
	for i := range c.t.reducers {
		state, known := c.reduce(nil, i)
		if c.parts[i] = c.parts[i][:0]; known {
			c.parts[i] = append(c.parts[i], state)
		} else {
			c.unknown[i] = true
		}
	}
	c.list, c.held = c.list[:0], 0
	for _, p := range c.parts {
		for _, state := range p {
			c.held += len(state)
		}
	}
	c.forget()
}

// reduce appends the state of what the block holds by one reducer. It is not known
// when the function fails, and when it is too large to be stored: a query that needs
// it reads the rows.
func (c *collector) reduce(dst []byte, i int) (state []byte, known bool) {
	if c.unknown[i] || c.failed[i] >= maxFailures {
		return dst, false
	}
	f, parts, from := c.functions[i], c.parts[i], len(dst)
	var err error
	if len(c.list) > 0 {
		dst, err = f.Reduce(dst, c.list)
		if err == nil && len(parts) > 0 {
			parts = append(parts, bytes.Clone(dst[from:]))
			dst = dst[:from]
		}
	}
	if err == nil && len(dst) == from {
		if len(parts) == 1 {
			dst = append(dst, parts[0]...)
		} else if len(parts) > 0 {
			dst, err = f.Rereduce(dst, parts)
		}
	}
	switch {
	case err != nil:
		if c.t.reducers[i].script != nil {
			c.failed[i]++
		}
		return dst[:from], false
	case len(dst)-from > stateBytes:
		return dst[:from], false
	}
	return dst, true
}

// addRow adds a row, given by its key behind the tree and its value.
func (c *collector) addRow(key, value []byte) error {
	c.rows++
	if len(c.t.reducers) == 0 {
		return nil
	}
	n := len(key) + len(value)
	if c.foldsWith(n) {
		c.fold()
	}
	c.held += n
	r, err := c.t.decodeRow(c.bytes.copy(key), c.bytes.copy(value))
	c.list = append(c.list, r)
	return err
}

// decodeRow reads a row, given by its key behind the tree and its value, which
// it aliases except for the id. Sort is without the partition.
func (t *tree) decodeRow(key, value []byte) (r reduce.Row, err error) {
	v, err := decodeRowValue(value)
	if err != nil || v.sort > len(key) {
		return r, errRow()
	}
	var buf [64]byte
	id, _, ok := cutEscaped(buf[:0], key[v.sort:])
	sort := key[:v.sort]
	if ok && t.partitioned {
		_, sort, ok = cutEscaped(buf[:0], sort)
	}
	if !ok {
		return r, errRow()
	}
	return reduce.Row{Sort: sort, Key: v.key, ID: string(id), Value: v.value}, nil
}

// addBlock adds a block of the level below.
func (c *collector) addBlock(b *block) {
	c.rows += b.rows
	if b.rows == 0 {
		return
	}
	n := 0
	for _, s := range b.states {
		n += len(s)
	}
	if c.foldsWith(n) {
		c.fold()
	}
	c.held += n
	for i, s := range b.states {
		if s == nil {
			c.unknown[i] = true
			continue
		}
		c.parts[i] = append(c.parts[i], c.bytes.copy(s))
	}
}

// finish returns the states of the block, valid until reset.
func (c *collector) finish() [][]byte {
	c.out = c.out[:0]
	ends := make([]int, 0, 8)
	for i := range c.t.reducers {
		known := c.rows > 0
		if known {
			c.out, known = c.reduce(c.out, i)
		}
		c.states[i] = nil
		if known {
			c.states[i] = []byte{} // set below, when the buffer does not move any more
		}
		ends = append(ends, len(c.out))
	}
	from := 0
	for i, end := range ends {
		if c.states[i] != nil {
			c.states[i] = c.out[from:end:end]
		}
		from = end
	}
	return c.states
}

// arena copies texts into buffers that do not move.
type arena struct {
	chunks [][]byte
	used   int // chunks in use
}

const (
	arenaFirst = 1 << 10 // bytes of the first one
	arenaChunk = 32 << 10
)

func (a *arena) reset() { a.used = 0 }

// bytes is how much memory there is in it.
func (a *arena) bytes() (n int) {
	for _, c := range a.chunks {
		n += cap(c)
	}
	return n
}

func (a *arena) copy(b []byte) []byte { return append(a.take(len(b)), b...) }

// take returns space for n bytes.
func (a *arena) take(n int) []byte {
	for {
		if a.used > 0 {
			if ch := a.chunks[a.used-1]; cap(ch)-len(ch) >= n {
				from := len(ch)
				a.chunks[a.used-1] = ch[:from+n]
				return ch[from : from : from+n]
			}
		}
		if a.used == len(a.chunks) || cap(a.chunks[a.used]) < n {
			a.chunks = append(a.chunks[:a.used], make([]byte, 0, max(min(arenaChunk, arenaFirst<<(2*a.used)), n)))
		}
		a.chunks[a.used] = a.chunks[a.used][:0]
		a.used++
	}
}
