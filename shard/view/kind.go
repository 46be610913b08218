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
	large  int       // index.CommitBytes
	known  atomic.Pointer[summary]
	held   *atomic.Int64 // bytes of blocks in memory, of all indexes

	// The rest belongs to the update that runs.
	ctx     context.Context
	x       *storage.Index
	st      state
	changed [][]change   // by tree
	noted   int          // bytes of them
	mended  uint64       // rows that were changed in this update while there were blocks
	most    uint64       // of them, then the update is a long one
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
	longUpdate = 4096 // changes, or rows
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
	v.mended, v.most = 0, max(v.long, rows/rebuildOne)
	if grown || changes > v.most {
		v.st.blocks = false
	}
	v.changed = make([][]change, len(v.trees))
	v.edits = make([]*blockEdit, len(v.trees))
	return v.st.blocks, nil
}

// Map implements index.Kind.
func (v *viewIndex) Map(ctx context.Context, docs []index.Doc, space *index.Space) (_ index.Mapped, n int, err error) {
	m, _ := v.pool.Get().(*mapped)
	if m == nil {
		m = &mapped{}
	}
	m.reset(space)
	err = v.mapper.run(ctx, m, docs)
	return m, len(m.docs), err
}

// Apply implements index.Kind.
func (v *viewIndex) Apply(b *storage.IndexBatch, from index.Mapped, first int, fresh bool) (n int, err error) {
	m := from.(*mapped)
	row := 0
	if first > 0 {
		row = m.docs[first-1].rows
	}
	for _, d := range m.docs[first:] {
		if n > 0 && !fresh && b.Len() >= v.large {
			break
		}
		if err := v.replace(b, m, row, &d, fresh); err != nil {
			return n, err
		}
		row = d.rows
		n++
	}
	if err := v.mendAll(b); err != nil {
		return n, err
	}
	v.key = v.st.append(v.key[:0], v.def.collation())
	b.Set([]byte(stateKey), v.key)
	if first+n == len(m.docs) && m.worthKeeping() {
		v.pool.Put(m)
	}
	return n, nil
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
		b.Set(v.key, d.back)
	case had:
		b.Delete(v.key)
	}
	for i := range m.rows[first:d.rows] {
		r := &m.rows[first+i]
		key := r.key()
		b.Set(key, r.text[r.value:])
		t := &v.st.trees[r.tree]
		t.rows++
		t.bytes += int64(r.size)
		if t.depth <= groupLevels {
			sort := r.sortKey()
			t.deepen(sort[v.trees[r.tree].behindPartition(sort):])
		}
		if err := v.note(b, int(r.tree), key, int(r.sort), true); err != nil {
			return err
		}
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
		if err := v.note(b, r.tree, v.key, len(r.sort), false); err != nil {
			return err
		}
	}
	return nil
}

// note remembers a changed row for its blocks and groups.
func (v *viewIndex) note(b *storage.IndexBatch, tree int, key []byte, sort int, present bool) error {
	if !v.st.blocks {
		return nil
	}
	if v.mended++; v.mended > v.most { // few documents may have many rows
		v.st.blocks = false
		clear(v.changed)
		return nil
	}
	v.changed[tree] = append(v.changed[tree], change{bytes.Clone(key[treePrefix:]), sort, present})
	if v.noted += len(key) + changeBytes; v.noted < notedBytes {
		return nil
	}
	return v.mendAll(b)
}

// Changed rows are remembered up to so many bytes before their blocks are mended.
const (
	notedBytes  = 4 << 20
	changeBytes = 64 // that one takes beside its key
)

// mendAll brings the blocks and groups of all trees up to date with the rows that
// were changed.
func (v *viewIndex) mendAll(b *storage.IndexBatch) error {
	v.noted = 0
	if !v.st.blocks {
		return nil
	}
	for t := range v.trees {
		if err := v.mend(b, t); err != nil {
			return err
		}
	}
	return nil
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
	return b.Commit(ctx)
}

// Rest implements index.Kind.
func (v *viewIndex) Rest() {
	v.x, v.ctx, v.changed, v.edits = nil, nil, nil, nil
	if v.noted = 0; cap(v.back) > keptBack {
		v.back = nil
	}
}

// keptBack is up to how many bytes an index keeps to read back entries into.
const keptBack = 64 << 10

// Close implements index.Kind.
func (v *viewIndex) Close() {
	v.closeScripts()
	v.forget(v.known.Swap(nil))
}

// closeScripts closes the functions of the index.
func (v *viewIndex) closeScripts() {
	if v.mapper != nil {
		v.mapper.close()
	}
	for t := range v.trees {
		for i := range v.trees[t].reducers {
			if r := v.trees[t].reducers[i].script; r != nil {
				r.Close()
			}
		}
	}
}
