package search

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/shard/search"
	"divan/storage/fault"
)

func drawPlace(t *rapid.T) *Place {
	p := &Place{Position: search.Position{ID: rapid.String().Draw(t, "id")}, Asked: Ranges(rapid.Uint32().Draw(t, "ranges"))}
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		p.Order = append(p.Order, search.Value{
			Number: rapid.Float64().Draw(t, "number"), Text: rapid.String().Draw(t, "text"),
			Kind: search.SortBy(rapid.IntRange(0, int(search.ByField)).Draw(t, "kind")), Missing: rapid.Bool().Draw(t, "missing"),
		})
	}
	return p
}

// A bookmark is read as it was written, and a changed one is refused.
func TestBookmark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlace(t)
		text := AppendBookmark(nil, p)
		got, err := ParseBookmark(string(text))
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%v, %v in place of %v", got, err, p)
		}
		at := rapid.IntRange(0, len(text)-2).Draw(t, "at") // of the last character some bits count for nothing
		text[at] = byte(rapid.SampledFrom([]rune("ABYZabyz0189-_*= ")).Draw(t, "other"))
		if other, err := ParseBookmark(string(text)); err == nil && !reflect.DeepEqual(other, p) {
			t.Fatalf("%q is taken for %v", text, other)
		}
	})
}

func TestStartIsABookmark(t *testing.T) {
	for _, text := range []string{string(AppendBookmark(nil, nil)), "g2o", "W10"} {
		if p, err := ParseBookmark(text); p != nil || err != nil {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

// Line breaks are skipped by the decoder of Base64; an answer repeats the text within JSON.
func TestLineBreakInBookmark(t *testing.T) {
	text := string(AppendBookmark(nil, &Place{Position: search.Position{Order: []search.Value{{Number: 1}}, ID: "d"}}))
	for _, in := range []string{text[:3] + "\n" + text[3:], text + "\r\n"} {
		if p, err := ParseBookmark(in); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	}
}

func FuzzBookmark(f *testing.F) {
	f.Add("")
	f.Add("nonsense")
	f.Add(string(AppendBookmark(nil, &Place{search.Position{Order: []search.Value{{Number: math.Inf(1)}, {Text: "x", Missing: true}}, ID: "d"}, 7})))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseBookmark(text)
		switch {
		case err != nil:
			if !fault.Is(err, fault.BadRequest) {
				t.Fatal(err)
			}
		case p != nil:
			again, err := ParseBookmark(string(AppendBookmark(nil, p)))
			if err != nil || !reflect.DeepEqual(again, p) {
				t.Fatalf("%v, %v in place of %v", again, err, p)
			}
		}
	})
}

// Counts of ranges are added up by value.
func TestAddCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := map[string]uint64{}
		var all []search.Count
		for range rapid.IntRange(0, 4).Draw(t, "ranges") {
			var one []search.Count
			for _, value := range []string{"a", "b", "c", "d"} {
				if n := rapid.Uint64Range(0, 3).Draw(t, value); n > 0 {
					one = append(one, search.Count{Value: value, Count: n})
					sum[value] += n
				}
			}
			all = addCounts(all, one)
		}
		for i, c := range all {
			if sum[c.Value] != c.Count || i > 0 && all[i-1].Value >= c.Value {
				t.Fatalf("%v in place of %v", all, sum)
			}
			delete(sum, c.Value)
		}
		if len(sum) > 0 {
			t.Fatalf("%v are lost", sum)
		}
	})
}
