package quorum

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// run merges sources as the coordinator does and returns the keys with the
// number of the source each came from.
func run(sources [][]string, desc bool) (keys []string, from []int) {
	m := NewMerge(len(sources), ByID(desc))
	pos := make([]int, len(sources))
	for i, s := range sources {
		if len(s) == 0 {
			m.End(i)
			continue
		}
		m.Set(i, s[0])
	}
	for {
		i, ok := m.Best()
		if !ok {
			return keys, from
		}
		keys, from = append(keys, sources[i][pos[i]]), append(from, i)
		if pos[i]++; pos[i] < len(sources[i]) {
			m.Set(i, sources[i][pos[i]])
		} else {
			m.End(i)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		sources [][]string
		desc    bool
		want    []string
	}{
		{name: "no sources", want: nil},
		{name: "one empty source", sources: [][]string{nil}, want: nil},
		{name: "one", sources: [][]string{{"a", "b"}}, want: []string{"a", "b"}},
		{name: "two", sources: [][]string{{"a", "d"}, {"b", "c"}}, want: []string{"a", "b", "c", "d"}},
		{name: "two, one empty", sources: [][]string{nil, {"b", "c"}}, want: []string{"b", "c"}},
		{name: "raw bytes, not letters", sources: [][]string{{"Z", "é"}, {"_", "a"}}, want: []string{"Z", "_", "a", "é"}},
		{name: "descending", sources: [][]string{{"d", "a"}, {"c", "b"}}, desc: true, want: []string{"d", "c", "b", "a"}},
		{name: "three", sources: [][]string{{"c"}, {"a", "e"}, {"b", "d"}}, want: []string{"a", "b", "c", "d", "e"}},
		{name: "five with empty ones", sources: [][]string{nil, {"c"}, nil, {"a"}, {"b"}}, want: []string{"a", "b", "c"}},
		{name: "all empty", sources: [][]string{nil, nil, nil}, want: nil},
		{name: "empty ids", sources: [][]string{{"", "x"}, {""}, {"a"}}, want: []string{"", "", "a", "x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, _ := run(tc.sources, tc.desc); !slices.Equal(got, tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMergeIsASort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desc := rapid.Bool().Draw(t, "descending")
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00é")), 0, 3, -1)
		sources := rapid.SliceOfN(rapid.SliceOfN(key, 0, 12), 1, 9).Draw(t, "sources")
		type row struct {
			key string
			src int
		}
		var want []row
		for i, s := range sources {
			slices.Sort(s)
			if desc {
				slices.Reverse(s)
			}
			for _, k := range s {
				want = append(want, row{k, i})
			}
		}
		// A stable sort keeps equal keys in the order of their sources.
		slices.SortStableFunc(want, func(a, b row) int {
			c := 0
			if a.key < b.key {
				c = -1
			} else if a.key > b.key {
				c = 1
			}
			if desc {
				c = -c
			}
			return c
		})
		keys, from := run(sources, desc)
		if len(keys) != len(want) {
			t.Fatalf("%d rows, want %d", len(keys), len(want))
		}
		for i, w := range want {
			if keys[i] != w.key || from[i] != w.src {
				t.Fatalf("row %d: %q of source %d, want %q of %d", i, keys[i], from[i], w.key, w.src)
			}
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	for _, k := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("sources=%d", k), func(b *testing.B) {
			const rows = 4096
			sources := make([][]string, k)
			for i := range rows {
				s := i * 7919 % k // spread as a hash does
				sources[s] = append(sources[s], fmt.Sprintf("document-%08d", i))
			}
			pos := make([]int, k)
			for b.Loop() {
				clear(pos)
				m := NewMerge(k, ByID(false))
				for i, s := range sources {
					m.Set(i, s[0])
				}
				for {
					i, ok := m.Best()
					if !ok {
						break
					}
					if pos[i]++; pos[i] < len(sources[i]) {
						m.Set(i, sources[i][pos[i]])
					} else {
						m.End(i)
					}
				}
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// TestShare: a small limit reads a few rows per shard, and a hint never
// exceeds what is wanted.
func TestShare(t *testing.T) {
	for _, tc := range []struct{ skip, limit, shards, want int }{
		{0, -1, 2, 0}, {0, 0, 2, 1}, {0, 1, 1, 1}, {0, 20, 1, 20}, {0, 20, 2, 18}, {0, 20, 8, 7}, {5, 20, 2, 21}, {0, 1, 8, 1},
	} {
		if got := Share(tc.skip, tc.limit, tc.shards); got != tc.want {
			t.Errorf("skip %d, limit %d, %d shards: %d, want %d", tc.skip, tc.limit, tc.shards, got, tc.want)
		}
	}
}
