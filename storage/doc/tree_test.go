package doc

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a tree as plain sets, to hold Tree against.
type model struct {
	parent map[Rev]Rev // zero Rev: a root
	node   map[Rev]Node
}

func (m *model) merge(p Path, leaf Node) {
	for i := range p.IDs {
		r := Rev{p.Start - uint64(i), p.IDs[i]}
		if _, ok := m.node[r]; !ok {
			m.node[r] = Node{Rev: r}
		}
		if i+1 < len(p.IDs) && m.parent[r].IsZero() {
			m.parent[r] = Rev{r.Pos - 1, p.IDs[i+1]}
		}
	}
	if n := m.node[leaf.Rev]; leaf.Stored && !n.Stored {
		m.node[leaf.Rev] = leaf
	}
}

func (m *model) leaf(r Rev) bool {
	for _, up := range m.parent {
		if up == r {
			return false
		}
	}
	return true
}

// leaves in the order of Tree.Leaves.
func (m *model) leaves() []Node {
	var list []Node
	for r, n := range m.node {
		if m.leaf(r) {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b Node) int {
		if a.Deleted != b.Deleted {
			if a.Deleted {
				return 1
			}
			return -1
		}
		return b.Rev.Compare(a.Rev)
	})
	return list
}

func (m *model) lineage(r Rev) []Node {
	var list []Node
	for ; !r.IsZero(); r = m.parent[r] {
		list = append(list, m.node[r])
	}
	return list
}

// retain removes all but the revisions in keep and returns the removed ones.
func (m *model) retain(keep map[Rev]bool) []Node {
	var removed []Node
	for r, n := range m.node {
		if !keep[r] {
			removed = append(removed, n)
		}
	}
	for _, n := range removed {
		delete(m.node, n.Rev)
		delete(m.parent, n.Rev)
	}
	for r, up := range m.parent {
		if _, ok := m.node[up]; !ok {
			delete(m.parent, r)
		}
	}
	slices.SortFunc(removed, func(a, b Node) int { return a.Rev.Compare(b.Rev) })
	return removed
}

// stem keeps of each leaf's path the newest limit revisions and the links
// between them.
func (m *model) stem(limit int) []Node {
	keep, linked := map[Rev]bool{}, map[Rev]bool{}
	for _, l := range m.leaves() {
		line := m.lineage(l.Rev)
		line = line[:min(max(limit, 1), len(line))]
		for i, n := range line {
			keep[n.Rev] = true
			linked[n.Rev] = linked[n.Rev] || i+1 < len(line)
		}
	}
	removed := m.retain(keep)
	for r := range m.parent {
		if !linked[r] {
			delete(m.parent, r)
		}
	}
	return removed
}

// diff describes how t differs from the model, empty when it does not.
func (m *model) diff(t *Tree) string {
	if err := t.verify(); err != "" {
		return err
	}
	if t.Len() != len(m.node) {
		return fmt.Sprintf("%d nodes, want %d", t.Len(), len(m.node))
	}
	if got, want := t.Leaves(), m.leaves(); !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("leaves %v, want %v", got, want)
	}
	w, ok := t.Winner()
	if ok != (len(m.node) > 0) || ok && w != m.leaves()[0] {
		return fmt.Sprintf("winner %v", w)
	}
	for r, n := range m.node {
		got, leaf, ok := t.Find(r)
		if !ok || got != n || leaf != m.leaf(r) {
			return fmt.Sprintf("Find(%v): %v %v %v, want %v", r, got, leaf, ok, n)
		}
		line := m.lineage(r)
		if got := t.Lineage(r); !reflect.DeepEqual(got, line) {
			return fmt.Sprintf("Lineage(%v): %v, want %v", r, got, line)
		}
		p := t.Path(r, 2)
		if p.Rev() != r || len(p.IDs) != min(2, len(line)) || len(line) > 1 && p.Parent() != line[1].Rev || len(t.Path(r, 0).IDs) != len(line) {
			return fmt.Sprintf("Path(%v): %v", r, p)
		}
		var below []Node
		for _, l := range m.leaves() {
			if slices.ContainsFunc(m.lineage(l.Rev), func(n Node) bool { return n.Rev == r }) {
				below = append(below, l)
			}
		}
		if got := t.LeavesFrom(r); !reflect.DeepEqual(got, below) {
			return fmt.Sprintf("LeavesFrom(%v): %v, want %v", r, got, below)
		}
	}
	return ""
}

// verify checks the invariants I1 to I4.
func (t *Tree) verify() string {
	inner := make([]bool, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if i > 0 && !t.nodes[i-1].less(n.pos, n.id) {
			return fmt.Sprintf("I1 at %d", i)
		}
		if up := n.parent; up != noParent {
			if up < 0 || int(up) >= i || t.nodes[up].pos+1 != n.pos {
				return fmt.Sprintf("I2 at %d", i)
			}
			inner[up] = true
		}
		if !n.stored && (n.external != 0 || n.active != 0) {
			return fmt.Sprintf("I4 at %d", i)
		}
	}
	for i := range t.nodes {
		if inner[i] != t.nodes[i].inner {
			return fmt.Sprintf("I3 at %d", i)
		}
	}
	return ""
}

// edit is one argument of Merge.
type edit struct {
	path Path
	leaf Node
}

// edits draws paths of one consistent history, cut at random lengths: a forest
// of revisions is drawn first, so that every revision has one parent.
func edits(t *rapid.T) []edit {
	n := rapid.IntRange(1, 24).Draw(t, "revisions")
	revs := make([]Rev, n)
	up := make([]int, n)
	used := map[Rev]bool{}
	for i := range revs {
		up[i] = rapid.IntRange(-1, i-1).Draw(t, "parent")
		pos := uint64(rapid.IntRange(1, 5).Draw(t, "root"))
		if up[i] >= 0 {
			pos = revs[up[i]].Pos + 1
		}
		for {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "aa", "0123456789abcdef", "", "\xff", "ff"}).Draw(t, "id")
			if revs[i] = (Rev{pos, id}); !used[revs[i]] {
				break
			}
			revs[i].ID += fmt.Sprint(i)
			break
		}
		used[revs[i]] = true
	}
	list := make([]edit, rapid.IntRange(1, 12).Draw(t, "edits"))
	for k := range list {
		i := rapid.IntRange(0, n-1).Draw(t, "newest")
		p := Path{Start: revs[i].Pos}
		limit := rapid.IntRange(1, 8).Draw(t, "length")
		for j := i; j >= 0 && len(p.IDs) < limit; j = up[j] {
			p.IDs = append(p.IDs, revs[j].ID)
		}
		// What a revision holds follows from its name.
		leaf := Node{Rev: revs[i], Deleted: i%3 == 0, Stored: true, External: int64(i) * 100, Active: int64(i)}
		if rapid.IntRange(0, 9).Draw(t, "bodiless") == 0 {
			leaf = Node{Rev: revs[i]}
		}
		list[k] = edit{p, leaf}
	}
	return list
}

func build(list []edit) (Tree, *model) {
	m := &model{parent: map[Rev]Rev{}, node: map[Rev]Node{}}
	var t Tree
	for _, e := range list {
		t.Merge(e.path, e.leaf)
		m.merge(e.path, e.leaf)
	}
	return t, m
}

// TestMerge holds the tree to the model after every edit, and its outcomes to
// what changed.
func TestMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{parent: map[Rev]Rev{}, node: map[Rev]Node{}}
		var tree Tree
		for _, e := range edits(t) {
			before := tree.Clone()
			was, _, known := before.Find(e.leaf.Rev)
			stored := was.Stored
			_, parentLeaf, _ := before.Find(e.path.Parent())
			// The nearest known ancestor decides between leaf and branch.
			joinsLeaf := parentLeaf
			for i := 1; i < len(e.path.IDs) && !joinsLeaf; i++ {
				_, leaf, ok := before.Find(Rev{e.path.Start - uint64(i), e.path.IDs[i]})
				if joinsLeaf = leaf; ok {
					break
				}
			}
			got := tree.Merge(e.path, e.leaf)
			m.merge(e.path, e.leaf)
			if d := m.diff(&tree); d != "" {
				t.Fatalf("after %v: %s", e, d)
			}
			want := Known
			switch {
			case !known && (before.Len() == 0 || joinsLeaf):
				want = NewLeaf
			case !known:
				want = NewBranch
			case !stored && e.leaf.Stored:
				want = Filled
			case !before.Equal(&tree):
				want = Joined
			}
			if got != want {
				t.Fatalf("%v: outcome %d, want %d", e, got, want)
			}
			if again := tree.Merge(e.path, e.leaf); again != Known {
				t.Fatalf("%v again: outcome %d", e, again)
			}
			if d := m.diff(&tree); d != "" {
				t.Fatalf("after %v again: %s", e, d)
			}
		}
	})
}

// TestMergeOrder checks that copies that take the same edits in any order, and
// any of them twice, are the same bytes: merging is commutative, associative
// and idempotent, and the winner does not depend on the order of arrival.
func TestMergeOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := edits(t)
		one, _ := build(list)
		other, _ := build(append(rapid.Permutation(list).Draw(t, "order"), rapid.SampledFrom(list).Draw(t, "again")))
		if a, b := one.appendBinary(nil), other.appendBinary(nil); !slices.Equal(a, b) {
			t.Fatalf("%v\n%v", one.Nodes(), other.Nodes())
		}
	})
}

// TestMergeContradiction checks that a revision that is sent with another
// parent keeps the one it has, and that nothing else is damaged.
func TestMergeContradiction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tree Tree
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 6)
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			p := Path{Start: uint64(rapid.IntRange(0, 7).Draw(t, "start")), IDs: ids.Draw(t, "ids")}
			before := tree.Clone()
			tree.Merge(p, Node{Rev: p.Rev(), Stored: true, Active: 1})
			if d := tree.verify(); d != "" {
				t.Fatalf("after %v: %s", p, d)
			}
			for _, n := range before.Nodes() {
				was, is := before.Path(n.Rev, 2).Parent(), tree.Path(n.Rev, 2).Parent()
				if !was.IsZero() && was != is {
					t.Fatalf("after %v: %v moved from %v to %v", p, n.Rev, was, is)
				}
			}
			if _, _, ok := tree.Find(p.Rev()); !ok && uint64(len(p.IDs)-1) <= p.Start {
				t.Fatalf("%v is lost", p)
			}
		}
	})
}

// TestStem holds stemming to its definition: exactly the revisions that are
// among the newest limit of some leaf's path stay.
func TestStem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree, m := build(edits(t))
		leaves := tree.Leaves()
		limit := rapid.IntRange(0, 6).Draw(t, "limit")
		removed := tree.Stem(limit)
		if want := m.stem(limit); !reflect.DeepEqual(removed, want) {
			t.Fatalf("removed %v, want %v", removed, want)
		}
		if d := m.diff(&tree); d != "" {
			t.Fatal(d)
		}
		if !reflect.DeepEqual(tree.Leaves(), leaves) {
			t.Fatalf("leaves %v, were %v", tree.Leaves(), leaves)
		}
		if more := tree.Stem(limit); more != nil {
			t.Fatalf("a second time: %v", more)
		}
	})
}

// TestAdd holds an update to merging and stemming one after the other, and
// checks that repeating it changes nothing.
func TestAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{parent: map[Rev]Rev{}, node: map[Rev]Node{}}
		var tree Tree
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		for _, e := range edits(t) {
			before := tree.Clone()
			outcome, removed := tree.Add(e.path, e.leaf, limit)
			m.merge(e.path, e.leaf)
			want := m.stem(limit)
			if d := m.diff(&tree); d != "" {
				t.Fatalf("after %v: %s", e, d)
			}
			if (outcome == Known) != before.Equal(&tree) {
				t.Fatalf("%v: outcome %d, from %v to %v", e, outcome, before, tree)
			}
			if outcome != Known && !reflect.DeepEqual(removed, want) || outcome == Known && removed != nil {
				t.Fatalf("%v: outcome %d, removed %v, want %v", e, outcome, removed, want)
			}
			if again, removed := tree.Add(e.path, e.leaf, limit); again != Known || again == Known && removed != nil {
				t.Fatalf("%v again: outcome %d", e, again)
			}
		}
	})
}

// TestPrune holds purging to its definition: what remains are the paths of the
// leaves that were not named.
func TestPrune(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree, m := build(edits(t))
		known := tree.Nodes()
		var revs, want []Rev
		for range rapid.IntRange(0, 5).Draw(t, "named") {
			r := known[rapid.IntRange(0, len(known)-1).Draw(t, "rev")].Rev
			if m.leaf(r) && !slices.Contains(want, r) {
				want = append(want, r)
			}
			revs = append(revs, r)
		}
		revs = append(revs, Rev{99, "unknown"})
		keep := map[Rev]bool{}
		for _, l := range m.leaves() {
			if !slices.Contains(want, l.Rev) {
				for _, n := range m.lineage(l.Rev) {
					keep[n.Rev] = true
				}
			}
		}
		purged, removed := tree.Prune(revs)
		if gone := m.retain(keep); !reflect.DeepEqual(purged, want) || !reflect.DeepEqual(removed, gone) {
			t.Fatalf("purged %v, removed %v; want %v, %v", purged, removed, want, gone)
		}
		if d := m.diff(&tree); d != "" {
			t.Fatal(d)
		}
	})
}

// TestMissing holds Missing to golden bulk/07.
func TestMissing(t *testing.T) {
	t.Parallel()
	var tree Tree
	add := func(start uint64, ids ...string) {
		tree.Merge(Path{start, ids}, Node{Rev: Rev{start, ids[0]}, Stored: true})
	}
	add(3, "3", "2", "1")
	add(2, "b", "1")
	for _, c := range []struct{ ask, missing, ancestors []Rev }{
		{[]Rev{{3, "3"}, {2, "2"}, {1, "1"}, {2, "b"}}, nil, nil},
		{[]Rev{{3, "3"}, {4, "4"}}, []Rev{{4, "4"}}, []Rev{{3, "3"}, {2, "b"}}},
		{[]Rev{{3, "f"}}, []Rev{{3, "f"}}, []Rev{{2, "b"}}},
		{[]Rev{{1, "f"}}, []Rev{{1, "f"}}, nil},
		{[]Rev{{1, "f"}, {9, "9"}, {9, "9"}}, []Rev{{1, "f"}, {9, "9"}, {9, "9"}}, []Rev{{3, "3"}, {2, "b"}}},
		{nil, nil, nil},
	} {
		missing, ancestors := tree.Missing(c.ask)
		if !reflect.DeepEqual(missing, c.missing) || !reflect.DeepEqual(ancestors, c.ancestors) {
			t.Errorf("%v: missing %v, ancestors %v", c.ask, missing, ancestors)
		}
	}
	var empty Tree
	if missing, ancestors := empty.Missing([]Rev{{2, "2"}}); len(missing) != 1 || ancestors != nil {
		t.Errorf("empty tree: %v, %v", missing, ancestors)
	}
}

// TestGoldenReplicated plays golden docs/13 on a tree.
func TestGoldenReplicated(t *testing.T) {
	t.Parallel()
	var tree Tree
	for _, c := range []struct {
		start   uint64
		ids     []string
		outcome Outcome
		leaves  []Rev
	}{
		{1, []string{"1"}, NewLeaf, []Rev{{1, "1"}}},
		{1, []string{"1"}, Known, []Rev{{1, "1"}}},
		{2, []string{"2", "1"}, NewLeaf, []Rev{{2, "2"}}},
		{5, []string{"5", "4", "3", "2", "1"}, NewLeaf, []Rev{{5, "5"}}},
		{4, []string{"4", "3", "2", "1"}, Filled, []Rev{{5, "5"}}},
		{3, []string{"b", "2", "1"}, NewBranch, []Rev{{5, "5"}, {3, "b"}}},
		{8, []string{"8"}, NewBranch, []Rev{{8, "8"}, {5, "5"}, {3, "b"}}},
		{9, []string{"9", "8", "7", "6", "5"}, NewLeaf, []Rev{{9, "9"}, {3, "b"}}},
		{10, []string{"a", "9"}, NewLeaf, []Rev{{10, "a"}, {3, "b"}}},
		{11, []string{"c"}, NewBranch, []Rev{{11, "c"}, {10, "a"}, {3, "b"}}},
	} {
		rev := Rev{c.start, c.ids[0]}
		if got := tree.Merge(Path{c.start, c.ids}, Node{Rev: rev, Stored: true}); got != c.outcome {
			t.Errorf("%v: outcome %d, want %d", rev, got, c.outcome)
		}
		var leaves []Rev
		for _, n := range tree.Leaves() {
			leaves = append(leaves, n.Rev)
		}
		if !reflect.DeepEqual(leaves, c.leaves) {
			t.Errorf("after %v: leaves %v, want %v", rev, leaves, c.leaves)
		}
	}
	if n, _, ok := tree.Find(Rev{4, "4"}); !ok || !n.Stored {
		t.Errorf("4: %v", n)
	}
	if n, _, ok := tree.Find(Rev{3, "3"}); !ok || n.Stored {
		t.Errorf("3: %v", n)
	}
	if p := tree.Path(Rev{10, "a"}, 0); len(p.IDs) != 10 {
		t.Errorf("path %v", p)
	}
}

// TestWinner compares raw bytes and looks at deletion first (golden docs/07).
func TestWinner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		leaves []Node
		want   Rev
	}{
		{[]Node{{Rev: Rev{1, "\x22"}}, {Rev: Rev{1, "\x99"}}}, Rev{1, "\x99"}},
		{[]Node{{Rev: Rev{10, "\x00"}}, {Rev: Rev{9, "\xff"}}}, Rev{10, "\x00"}},
		{[]Node{{Rev: Rev{5, "f"}, Deleted: true}, {Rev: Rev{1, "1"}}}, Rev{1, "1"}},
		{[]Node{{Rev: Rev{5, "f"}, Deleted: true}, {Rev: Rev{1, "1"}, Deleted: true}}, Rev{5, "f"}},
		{[]Node{{Rev: Rev{1, "ab"}}, {Rev: Rev{1, "abc"}}}, Rev{1, "abc"}},
	} {
		var tree Tree
		for _, n := range c.leaves {
			n.Stored = true
			tree.Merge(Path{n.Rev.Pos, []string{n.Rev.ID}}, n)
		}
		if w, ok := tree.Winner(); !ok || w.Rev != c.want {
			t.Errorf("%v: %v", c.leaves, w)
		}
	}
	var empty Tree
	if _, ok := empty.Winner(); ok || empty.Leaves() != nil || empty.Nodes() != nil || empty.Lineage(Rev{1, "x"}) != nil || empty.LeavesFrom(Rev{1, "x"}) != nil {
		t.Error("the empty tree has something")
	}
}

// TestAddRepeated plays golden docs/12: a history longer than the limit is cut,
// and sent again it changes nothing, with any body.
func TestAddRepeated(t *testing.T) {
	t.Parallel()
	var tree Tree
	p := Path{6, []string{"6", "5", "4", "3", "2", "1"}}
	leaf := Node{Rev: p.Rev(), Stored: true, Active: 10}
	outcome, removed := tree.Add(p, leaf, 3)
	if outcome != NewLeaf || len(removed) != 3 || removed[0].Rev != (Rev{1, "1"}) {
		t.Errorf("outcome %d, removed %v", outcome, removed)
	}
	leaf.Active = 99
	if outcome, removed := tree.Add(p, leaf, 3); outcome != Known || removed != nil {
		t.Errorf("again: outcome %d, removed %v", outcome, removed)
	}
	if outcome, _ := tree.Add(Path{4, []string{"e", "3", "2", "1"}}, Node{Rev: Rev{4, "e"}, Stored: true}, 3); outcome != NewBranch {
		t.Errorf("branch: outcome %d", outcome)
	}
	if got := tree.Path(Rev{4, "e"}, 0); !reflect.DeepEqual(got, Path{4, []string{"e", "3", "2"}}) {
		t.Errorf("branch: %v", got)
	}
	// With more space the same edit brings its ancestors, but not its body.
	if outcome, _ := tree.Add(p, leaf, 1000); outcome != Joined {
		t.Errorf("with more space: outcome %d", outcome)
	}
	if n, _, _ := tree.Find(Rev{6, "6"}); n.Active != 10 || len(tree.Path(n.Rev, 0).IDs) != 6 {
		t.Errorf("with more space: %v", tree.Nodes())
	}
}

// TestSetStored drops and restores the note of a body.
func TestSetStored(t *testing.T) {
	t.Parallel()
	tree := lineTree(3)
	second := tree.Nodes()[1]
	tree.SetStored(second.Rev, false)
	tree.SetStored(Rev{7, "unknown"}, true)
	if n, leaf, ok := tree.Find(second.Rev); !ok || leaf || n.Stored || n.Active != 0 || n.External != 0 {
		t.Errorf("%+v", n)
	}
	if got := tree.Merge(tree.Path(second.Rev, 0), second); got != Filled {
		t.Errorf("outcome %d", got)
	}
	if n, _, _ := tree.Find(second.Rev); n != second {
		t.Errorf("%+v, want %+v", n, second)
	}
}

// TestMergeLong checks that long histories cost no more than they should: a
// quadratic merge would not end within the test's time.
func TestMergeLong(t *testing.T) {
	t.Parallel()
	const n = 200_000
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%016x", n-i)
	}
	var tree Tree
	for _, p := range []Path{
		{Start: n / 2, IDs: ids[n/2 : n/2+10]},
		{Start: n, IDs: ids},
		{Start: n, IDs: append([]string{"other"}, ids[1:]...)},
	} {
		tree.Merge(p, Node{Rev: p.Rev(), Stored: true})
	}
	if l := tree.Leaves(); len(l) != 2 || tree.Len() != n+1 {
		t.Errorf("%d leaves, %d nodes", len(l), tree.Len())
	}
	if removed := tree.Stem(1000); len(removed) != n+1-1001 {
		t.Errorf("%d removed", len(removed))
	}
	if d := tree.verify(); d != "" {
		t.Error(d)
	}
}
