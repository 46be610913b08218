package view

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"

	"divan/storage"
)

// checkBlocks compares the aggregates of an index with ones made anew from its
// rows (B1), and its totals with the rows.
func (n *node) checkBlocks(t fatalist, d *Definition) {
	t.Helper()
	fatal := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatalf("check index: %v", err)
		}
	}
	ctx := context.Background()
	use, x, err := n.views.acquire(ctx, copyName, n.views.spec(copyName, d))
	fatal(err)
	defer use.Release()
	fatal(use.Update(ctx))
	snap, err := use.Index.Snapshot()
	fatal(err)
	defer snap.Close()
	st, err := readState(snap, len(x.trees), d.collation())
	fatal(err)
	if !st.blocks {
		t.Fatalf("an index that is up to date has no blocks")
	}
	for i := range x.trees {
		have := dump(t, snap, appendTree(nil, spaceBlocks, i))
		rows := dump(t, snap, appendTree(nil, spaceRows, i))
		var size int64
		for _, v := range rows {
			r, err := decodeRowValue(v)
			fatal(err)
			size += int64(len(r.key) + len(r.value))
		}
		if uint64(len(rows)) != st.trees[i].rows || size != st.trees[i].bytes {
			t.Fatalf("tree %d has %d rows of %d bytes, its state says %+v", i, len(rows), size, st.trees[i])
		}
		want := map[string][]byte{}
		builder := blockBuilder{
			ctx: ctx, tree: i, t: &x.trees[i], dense: 1,
			set:  func(key, value []byte) error { want[string(key)] = bytes.Clone(value); return nil },
			drop: func(int) {},
		}
		made := st.trees[i]
		fatal(builder.build(snap, &made))
		height := made.height
		checkGroups(t, &x.trees[i], &st.trees[i], have, want)
		if height > st.trees[i].height {
			t.Fatalf("tree %d has height %d, its state says %d", i, height, st.trees[i].height)
		}
		for level := height + 2; level <= st.trees[i].height+1; level++ { // levels that had borders once
			root := string(appendBlockKey(nil, i, level, nil))
			want[root] = want[string(appendBlockKey(nil, i, height+1, nil))]
		}
		if len(rows) == 0 && len(have) == 0 {
			continue
		}
		if !maps.EqualFunc(have, want, bytes.Equal) {
			for k, v := range want {
				if w, ok := have[k]; !ok || !bytes.Equal(v, w) {
					t.Fatalf("tree %d: block %s is %x, want %x", i, hex.EncodeToString([]byte(k)), w, v)
				}
			}
			t.Fatalf("tree %d has %d blocks, want %d", i, len(have), len(want))
		}
	}
}

// checkGroups compares the groups that are kept with those of all levels (G1), and
// takes both out. What a state says counts, not its bytes.
func checkGroups(t fatalist, of *tree, st *treeState, have, want map[string][]byte) {
	t.Helper()
	counts := map[int]uint64{}
	isGroup := func(key string) (level int, ok bool) {
		level = int(key[treePrefix])
		return level &^ groupMark, level&groupMark != 0
	}
	for key, v := range have {
		level, ok := isGroup(key)
		if !ok {
			continue
		}
		counts[level]++
		if st.kept&(1<<level) == 0 {
			t.Fatalf("tree %d has groups of level %d, which are not kept", of.number, level)
		}
		if got, w := describeGroup(t, of, v), describeGroup(t, of, want[key]); got != w {
			t.Fatalf("tree %d: group %s is %s, want %s", of.number, hex.EncodeToString([]byte(key)), got, w)
		}
		delete(have, key)
		delete(want, key)
	}
	for key := range want {
		level, ok := isGroup(key)
		if ok && st.kept&(1<<level) != 0 {
			t.Fatalf("tree %d: no group %s", of.number, hex.EncodeToString([]byte(key)))
		}
		if ok {
			delete(want, key)
		}
	}
	for level, n := range st.groups {
		if counts[level] != n {
			t.Fatalf("tree %d has %d groups of level %d, its state says %d", of.number, counts[level], level, n)
		}
	}
}

func describeGroup(t fatalist, of *tree, v []byte) string {
	t.Helper()
	var g groupEntry
	if err := g.decode(v, len(of.reducers)); err != nil {
		t.Fatalf("group %x: %v", v, err)
	}
	text := fmt.Sprintf("%d rows, %s to %s:", g.rows, g.first, g.last)
	for i, state := range g.states {
		final, err := of.reducers[i].function.Final(nil, state)
		if state == nil || err != nil {
			final = fmt.Append(nil, "nothing, ", err)
		}
		text += " " + string(final)
	}
	return text
}

func dump(t fatalist, snap *storage.IndexSnapshot, prefix []byte) map[string][]byte {
	t.Helper()
	it, err := snap.Iterate(prefix, keyEnd(prefix))
	if err != nil {
		t.Fatalf("%v", err)
	}
	out := map[string][]byte{}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			t.Fatalf("%v", err)
		}
		out[string(it.Key())] = bytes.Clone(v)
	}
	if err := it.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	return out
}
