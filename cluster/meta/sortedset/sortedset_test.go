package sortedset

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// word is an item.
type word struct {
	key    string
	marked bool
}

func (w word) SortKey() string { return w.key }
func (w word) Marked() bool    { return w.marked }

func TestAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Set[word]
		var names []string
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			name := fmt.Sprintf("%c%d", 'a'+rapid.IntRange(0, 3).Draw(t, "letter"), rapid.IntRange(0, 40).Draw(t, "number"))
			at, found := slices.BinarySearch(names, name)
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				d = d.Without(name)
				if found {
					names = slices.Delete(names, at, at+1)
				}
			} else {
				d = d.With(word{name, rapid.Bool().Draw(t, "marked")})
				if !found {
					names = slices.Insert(names, at, name)
				}
			}
			if d.Len() != len(names) {
				t.Fatalf("%d names, want %d", d.Len(), len(names))
			}
			if at := d.Index(name); at != firstAtLeast(names, name) {
				t.Fatalf("index of %s is %d", name, at)
			}
		}
		if depth := height(d.root); d.Len() > 1 && depth > 3*bits(d.Len()) {
			t.Fatalf("%d items in a tree of height %d", d.Len(), depth)
		}
		lo, hi := rapid.IntRange(-2, 150).Draw(t, "lo"), rapid.IntRange(-2, 150).Draw(t, "hi")
		stop := rapid.IntRange(1, 100).Draw(t, "stop")
		var want []string
		if from, to := max(lo, 0), min(hi, len(names)); from < to {
			want = names[from:to]
		}
		back := slices.Clone(want)
		slices.Reverse(back)
		check(t, d.Slice(lo, hi), want, stop)
		var marked []string
		for w := range d.All() {
			if w.marked {
				marked = append(marked, w.key)
			}
		}
		check(t, d.Marked(), marked, stop)
		check(t, d.Backward(lo, hi), back, stop)
	})
}

func check(t *rapid.T, seq func(func(word) bool), want []string, stop int) {
	var got []string
	for w := range seq {
		if got = append(got, w.key); len(got) == stop {
			break
		}
	}
	if want = want[:min(stop, len(want))]; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func firstAtLeast(names []string, name string) int {
	i, _ := slices.BinarySearch(names, name)
	return i
}

func height(n *node[word]) int {
	if n == nil {
		return 0
	}
	return 1 + max(height(n.left), height(n.right))
}

func bits(n int) int {
	b := 0
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}

func TestBuildIsBalanced(t *testing.T) {
	var all []word
	for i := range 1000 {
		all = append(all, word{key: fmt.Sprintf("%04d", i)})
	}
	d := Of(all)
	if d.Len() != 1000 || height(d.root) != 10 {
		t.Errorf("%d items, height %d", d.Len(), height(d.root))
	}
}
