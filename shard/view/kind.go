package view

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"divan/shard/index"
	"divan/storage"
)

// viewIndex is the index.Kind of views: rows, where each document has its rows,
// and aggregates.
type viewIndex struct {
	def    *Definition
	trees  []tree
	places map[string]place
	mapper mapper
	pool   sync.Pool // *mapped
	long   uint64    // longUpdate
	dense  uint64    // denseGroups
	known  atomic.Pointer[summary]
	held   *atomic.Int64 // bytes of blocks in memory, of all indexes

	// The rest belongs to the update that runs.
	ctx     context.Context
	x       *storage.Index
	st      state
	changed [][]change   // by tree
	edits   []*blockEdit // by tree
	back    []byte
	key     []byte
}

// change is a row that an update sets or deletes.
type change struct {
	key     []byte // behind the tree
	sort    int    // length of the sort key, with the partition
	present bool   // afterwards
}

// A long update does not touch the aggregates: each row would cost the reading
// of a block. They are made anew at its end, by one scan of the rows. It is
// long when that is less work.
const (
	longUpdate = 4096 // changes
	rebuildOne = 128  // rows are scanned in the time in which the blocks of one change are mended
	growth     = 4    // times the rows of the last time when all were made anew: groups may have become large
)

// Begin implements index.Kind.
func (v *viewIndex) Begin(ctx context.Context, x *storage.Index, changes uint64) (reads bool, err error) {
	v.x, v.ctx = x, ctx
	if v.st, err = readState(x, len(v.trees), v.def.collation()); err != nil {
		return false, err
	}
	rows, grown := uint64(0), false
	for i := range v.st.trees {
		t := &v.st.trees[i]
		rows += t.rows
		grown = grown || len(v.trees[i].reducers) > 0 && t.rows > max(v.long, growth*t.built)
	}
	if grown || changes > max(v.long, rows/rebuildOne) {
		v.st.blocks = false
	}
	v.changed = make([][]change, len(v.trees))
	v.edits = make([]*blockEdit, len(v.trees))
	return v.st.blocks, nil
}

// Map implements index.Kind.
func (v *viewIndex) Map(ctx context.Context, docs []index.Doc) (index.Mapped, error) {
	m, _ := v.pool.Get().(*mapped)
	if m == nil {
		m = &mapped{}
	}
	m.reset()
	if err := v.mapper.run(ctx, m, docs); err != nil {
		return nil, err
	}
	return m, nil
}

// Apply implements index.Kind.
func (v *viewIndex) Apply(b *storage.IndexBatch, from index.Mapped, fresh bool) error {
	m := from.(*mapped)
	defer v.pool.Put(m)
	first := 0
	for i := range m.docs {
		d := &m.docs[i]
		if err := v.replace(b, m, first, d, fresh); err != nil {
			return err
		}
		first = d.rows
	}
	if v.st.blocks {
		for t := range v.trees {
			if err := v.mend(b, t); err != nil {
				return err
			}
		}
	}
	v.key = v.st.append(v.key[:0], v.def.collation())
	b.Set([]byte(stateKey), v.key)
	return nil
}

// replace puts the rows of a document in the place of those it had.
func (v *viewIndex) replace(b *storage.IndexBatch, m *mapped, first int, d *mappedDoc, fresh bool) error {
	v.key = appendBackKey(v.key[:0], d.id)
	had := false
	if !fresh {
		var err error
		if v.back, had, err = v.x.Get(v.back[:0], v.key); err != nil {
			return err
		}
		if had {
			if err := v.remove(b, d.id); err != nil {
				return err
			}
			v.key = appendBackKey(v.key[:0], d.id)
		}
	}
	switch {
	case d.rows > first:
		b.Set(v.key, m.bytes[d.from:d.to])
	case had:
		b.Delete(v.key)
	}
	for i := range m.rows[first:d.rows] {
		r := &m.rows[first+i]
		key := m.bytes[r.from:r.value]
		b.Set(key, m.bytes[r.value:r.to])
		t := &v.st.trees[r.tree]
		t.rows++
		t.bytes += int64(r.size)
		if t.depth <= groupLevels {
			sort := key[treePrefix:][:r.sort]
			t.deepen(sort[v.trees[r.tree].behindPartition(sort):])
		}
		v.note(r.tree, key, r.sort, true)
	}
	return nil
}

// remove deletes the rows that the back index of a document names.
func (v *viewIndex) remove(b *storage.IndexBatch, id string) error {
	for rest := v.back; len(rest) > 0; {
		var r backRow
		var err error
		if r, rest, err = cutBackRow(rest); err != nil {
			return err
		}
		if r.tree >= len(v.trees) {
			return errRow()
		}
		v.key = appendRowKey(appendTree(v.key[:0], spaceRows, r.tree), r.sort, id, r.ordinal)
		b.Delete(v.key)
		t := &v.st.trees[r.tree]
		t.rows--
		t.bytes -= int64(r.size)
		v.note(r.tree, v.key, len(r.sort), false)
	}
	return nil
}

// note remembers a changed row for its blocks and groups.
func (v *viewIndex) note(tree int, key []byte, sort int, present bool) {
	if v.st.blocks {
		v.changed[tree] = append(v.changed[tree], change{bytes.Clone(key[treePrefix:]), sort, present})
	}
}

// mend brings the blocks and groups of a tree up to date with the rows that were
// changed.
func (v *viewIndex) mend(b *storage.IndexBatch, t int) error {
	list := v.changed[t]
	if len(list) == 0 {
		return nil
	}
	v.changed[t] = list[:0]
	slices.SortStableFunc(list, func(a, b change) int { return bytes.Compare(a.key, b.key) })
	last := list[:0] // of the changes of one row the last one counts
	for i := range list {
		if i+1 < len(list) && bytes.Equal(list[i].key, list[i+1].key) {
			continue
		}
		last = append(last, list[i])
	}
	if v.edits[t] == nil {
		v.edits[t] = &blockEdit{tree: t, c: newCollector(v.ctx, &v.trees[t])}
	}
	v.edits[t].b = b
	if err := v.edits[t].mend(&v.st.trees[t], last); err != nil {
		return err
	}
	return v.edits[t].mendGroups(v.dense, &v.st.trees[t], last)
}

// End implements index.Kind.
func (v *viewIndex) End(ctx context.Context, x *storage.Index) error {
	st, err := readState(x, len(v.trees), v.def.collation())
	if err != nil || st.blocks {
		return err
	}
	if err := v.rebuildBlocks(ctx, x, &st); err != nil {
		return err
	}
	b := x.NewBatch(false)
	defer b.Close()
	st.blocks = true
	b.Set([]byte(stateKey), st.append(nil, v.def.collation()))
	return b.Commit()
}

// Close implements index.Kind.
func (v *viewIndex) Close() {
	v.mapper.close()
	v.forget(v.known.Swap(nil))
}
