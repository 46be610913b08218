package doc

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

// blockMap keeps the blocks of one document.
type blockMap map[uint64][]byte

func (m blockMap) PutBlock(number uint64, block []byte) { m[number] = block }
func (m blockMap) DeleteBlock(number uint64)            { delete(m, number) }

// whole reads a record as it is stored, and what is in blocks.
func (m blockMap) whole(t *rapid.T, stored []byte) (tip, whole Record) {
	tip, err := DecodeRecord("d", stored)
	if err != nil {
		t.Fatal(err)
	}
	if whole = tip; !tip.Partial {
		if len(m) != 0 {
			t.Fatalf("%d blocks are left of a record without", len(m))
		}
		return tip, whole
	}
	first, end := tip.Below.Blocks()
	want := []uint64{}
	var older Tree
	for n := first; n < end; n++ {
		want = append(want, n)
		if err := older.AddBlock(n, m[n], tip.Below.Floor); err != nil {
			t.Fatalf("block %d of %+v: %v", n, tip.Below, err)
		}
	}
	if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
		t.Fatalf("blocks %v, want %v", got, want)
	}
	whole.Tree = tip.Tree.Clone()
	if err := whole.Widen(&older); err != nil {
		t.Fatal(err)
	}
	return tip, whole
}

// TestHistoryInBlocks lets a document grow, branch and be cut, written whole or as its
// record alone was read, and compares what is stored with the tree.
func TestHistoryInBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		blocks := blockMap{}
		var want Tree
		var stored []byte
		put := func(old *Record, next Record) {
			winner, _ := next.Tree.Winner()
			next.ID, next.Winner, next.Deleted = "d", winner.Rev, winner.Deleted
			next.Settle(old, blocks)
			stored = next.AppendBinary(nil)
			if len(stored) > 300+(minTip+blockLen)*32 && next.Tree.line() {
				t.Fatalf("a record of %d bytes", len(stored))
			}
		}
		add := func(tree *Tree, n int) {
			for range n {
				w, _ := tree.Winner()
				rev := Rev{Pos: w.Rev.Pos + 1, ID: NewRevID(false, w.Rev, []byte("{}"), nil)}
				p := Path{Start: rev.Pos, IDs: []string{rev.ID}}
				if !w.Rev.IsZero() {
					p.IDs = append(p.IDs, w.Rev.ID)
				}
				tree.Merge(p, Node{Rev: rev, Stored: rev.Pos%3 > 0, External: int64(rev.Pos), Active: 1})
			}
		}
		add(&want, rapid.IntRange(1, 200).Draw(t, "first"))
		put(nil, Record{Tree: want.Clone()})
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				n := rapid.IntRange(1, 70).Draw(t, "n")
				tip, _ := blocks.whole(t, stored)
				next := tip
				next.Tree = tip.Tree.Clone()
				add(&next.Tree, n)
				add(&want, n)
				put(&tip, next)
			},
			"cut": func(t *rapid.T) {
				limit := rapid.IntRange(1, 300).Draw(t, "limit")
				tip, whole := blocks.whole(t, stored)
				want.Stem(limit)
				whole.Tree.Stem(limit)
				put(&tip, whole)
			},
			"floor": func(t *rapid.T) {
				tip, _ := blocks.whole(t, stored)
				if !tip.Partial {
					return
				}
				next := tip
				next.Tree = tip.Tree.Clone()
				next.Below.Floor += rapid.Uint64Range(0, next.Below.Tip-next.Below.Floor-1).Draw(t, "floor")
				want.Stem(int(want.nodes[want.Len()-1].pos - next.Below.Floor + 1))
				put(&tip, next)
			},
			"branch": func(t *rapid.T) {
				tip, whole := blocks.whole(t, stored)
				at := rapid.SampledFrom(want.Nodes()).Draw(t, "at")
				p := Path{Start: at.Rev.Pos + 1, IDs: []string{"branch", at.Rev.ID}}
				for _, tree := range []*Tree{&whole.Tree, &want} {
					tree.Merge(p, Node{Rev: p.Rev(), Stored: true})
				}
				put(&tip, whole)
			},
			"prune": func(t *rapid.T) {
				tip, whole := blocks.whole(t, stored)
				if leaves := want.Leaves(); len(leaves) > 1 {
					gone := []Rev{rapid.SampledFrom(leaves).Draw(t, "leaf").Rev}
					want.Prune(gone)
					whole.Tree.Prune(gone)
				}
				put(&tip, whole)
			},
			"": func(t *rapid.T) {
				tip, whole := blocks.whole(t, stored)
				if !whole.Tree.Equal(&want) {
					t.Fatalf("%d revisions, want %d", whole.Tree.Len(), want.Len())
				}
				if Branched(stored) != (len(want.Leaves()) > 1) || HasBlocks(stored) != tip.Partial {
					t.Fatal("the record says something else")
				}
			},
		})
	})
}

// TestDamagedBlocks: a block that is cut off, in another place, or does not go on where
// the last one ended, is found.
func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	var tree Tree
	p := Path{Start: 100}
	for range 100 {
		p.IDs = append(p.IDs, NewRevID(false, Rev{Pos: uint64(len(p.IDs)), ID: "x"}, nil, nil))
	}
	tree.Merge(p, Node{Rev: p.Rev(), Stored: true})
	blocks := blockMap{}
	r := Record{ID: "d", Winner: p.Rev(), Tree: tree}
	r.Settle(nil, blocks)
	if len(blocks) != 2 || r.Below != (Below{1, 64}) {
		t.Fatalf("%d blocks, %+v", len(blocks), r.Below)
	}
	corrupt := func(name string, err error) {
		if !fault.Is(err, fault.Corruption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := range blocks[1] {
		var older Tree
		corrupt("cut", older.AddBlock(1, blocks[1][:cut], 1))
	}
	var older Tree
	corrupt("another number", older.AddBlock(0, blocks[1], 1))
	corrupt("a gap", func() error { // the first block is not there
		var older Tree
		if err := older.AddBlock(1, blocks[1], 1); err != nil {
			return err
		}
		_, err := r.Below.Join(&older, &tree)
		return err
	}())
	if err := older.AddBlock(0, blocks[0], 1); err != nil {
		t.Fatal(err)
	}
	_, err := r.Below.Join(&older, &Tree{nodes: tree.nodes[70:]})
	corrupt("a gap before the record", err)
	stored := r.AppendBinary(nil)
	for cut := range stored {
		if _, err := DecodeRecord("d", stored[:cut]); !fault.Is(err, fault.Corruption) {
			t.Fatalf("%d of %d bytes: %v", cut, len(stored), err)
		}
	}
}
