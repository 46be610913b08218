package reduce

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func sources() []string {
	return []string{"_sum", "_count", "_stats", "_approx_count_distinct", "_top_3", "_bottom_3", "_first", "_last"}
}

// numbers draws JSON numbers of every kind.
func numbers() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-20, 20), strconv.Itoa),
		rapid.Map(rapid.Int64(), func(i int64) string { return strconv.FormatInt(i, 10) }),
		rapid.StringMatching(`-?[1-9][0-9]{17,40}`),
		rapid.Map(rapid.Float64(), func(f float64) string { return string(appendFloat(nil, f)) }).Filter(func(s string) bool { return s != "null" }),
		rapid.StringMatching(`-?[0-9]\.[0-9]{1,3}`),
		rapid.StringMatching(`-?[1-9](\.[0-9]{1,10})?e[+-]?[0-9]{1,2}`),
		rapid.SampledFrom([]string{"1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "-5e-324", "0", "0.0", "-0.0"}),
	)
}

// values draws JSON values that reduce functions may meet.
func values() *rapid.Generator[string] {
	list := func(of *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			out := "["
			for i, v := range rapid.SliceOfN(of, 0, 3).Draw(t, "elements") {
				if i > 0 {
					out += ","
				}
				out += v
			}
			return out + "]"
		})
	}
	object := func(of *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			out := "{"
			for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "sum", "error"}), 0, 3, rapid.ID).Draw(t, "names") {
				if i > 0 {
					out += ","
				}
				out += strconv.Quote(name) + ":" + of.Draw(t, name)
			}
			return out + "}"
		})
	}
	odd := rapid.SampledFrom([]string{
		`null`, `true`, `"text"`, `"builtin_reduce_error"`, `"\u00e9"`, `"e\u0301"`, `{"error":"builtin_reduce_error","reason":"r"}`,
		`{"sum":1,"count":1,"min":1,"max":1,"sumsqr":1}`, `{"sum":0.5,"count":2.0,"min":-1e3,"max":12345678901234567890,"sumsqr":1}`,
	})
	inner := rapid.OneOf(numbers(), odd, list(numbers()), object(numbers()))
	return rapid.OneOf(numbers(), list(numbers()), list(inner), object(numbers()), object(inner), odd)
}

// kinds draws which values the rows of one case have: of one shape, so that
// there are results that are no errors, or of all.
func kinds() *rapid.Generator[*rapid.Generator[string]] {
	return rapid.SampledFrom([]*rapid.Generator[string]{
		numbers(),
		rapid.Map(rapid.SliceOfN(numbers(), 2, 2), func(v []string) string { return "[" + v[0] + "," + v[1] + "]" }),
		rapid.Map(rapid.SliceOfN(numbers(), 2, 2), func(v []string) string { return `{"a":` + v[0] + `,"b":{"c":` + v[1] + `}}` }),
		values(),
	})
}

// TestAnySplitAndOrder cuts rows into blocks and reduces the states in a random
// order and nesting.
func TestAnySplitAndOrder(t *testing.T) {
	for _, source := range sources() {
		t.Run(source, func(t *testing.T) {
			f := function(t, source)
			rapid.Check(t, func(rt *rapid.T) {
				value := kinds().Draw(rt, "kind")
				var rows []Row
				for i := range rapid.IntRange(1, 30).Draw(rt, "rows") {
					key := strconv.Itoa(rapid.IntRange(0, 9).Draw(rt, "key"))
					rows = append(rows, row(t, key, fmt.Sprintf("%03d", i), value.Draw(rt, "value")))
				}
				want := result(t, f, inOrder(rows))
				// Each row to one of some shards, blocks of each.
				var states [][]byte
				shards := make([][]Row, rapid.IntRange(1, 4).Draw(rt, "shards"))
				for _, r := range rows {
					at := rapid.IntRange(0, len(shards)-1).Draw(rt, "shard")
					shards[at] = append(shards[at], r)
				}
				for _, shard := range shards {
					for shard = inOrder(shard); len(shard) > 0; {
						n := rapid.IntRange(1, len(shard)).Draw(rt, "block")
						state, err := f.Reduce([]byte("before"), shard[:n])
						if err != nil {
							rt.Fatal(err)
						}
						states = append(states, bytes.TrimPrefix(state, []byte("before")))
						shard = shard[n:]
					}
				}
				for len(states) > 1 {
					states = rapid.Permutation(states).Draw(rt, "order")
					n := rapid.IntRange(1, len(states)).Draw(rt, "together")
					state, err := f.Rereduce(nil, states[:n])
					if err != nil {
						rt.Fatal(err)
					}
					states = append([][]byte{state}, states[n:]...)
				}
				if got := final(t, f, states[0]); got != want {
					rt.Fatalf("in parts %s\nat once  %s", got, want)
				}
			})
		})
	}
}

// inOrder returns rows in the order of a view.
func inOrder(rows []Row) []Row {
	out := append([]Row(nil), rows...)
	for i := range out {
		for j := i; j > 0 && compareRows(&out[j], &out[j-1]) < 0; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func compareRows(a, b *Row) int {
	if c := bytes.Compare(a.Sort, b.Sort); c != 0 {
		return c
	}
	return bytes.Compare([]byte(a.ID), []byte(b.ID))
}

// FuzzStates has states that no function made: nothing may panic or grow, and
// the error is that of damage.
func FuzzStates(f *testing.F) {
	functions := sources()
	for i, source := range functions {
		fn := function(f, source)
		for _, value := range []string{`1`, `1.5`, `[1,2.5]`, `{"a":{"b":[1]}}`, `"x"`, `12345678901234567890123`} {
			state, err := fn.Reduce(nil, rowsOf(f, value, value))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(i), state, state)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, a, b []byte) {
		fn := function(t, functions[int(which)%len(functions)])
		state, err := fn.Rereduce(nil, [][]byte{a, b})
		if err != nil {
			return
		}
		if len(state) > 2000+20*(len(a)+len(b)) {
			t.Fatalf("%d bytes of %d and %d", len(state), len(a), len(b))
		}
		if _, err := fn.Final(nil, state); err != nil && !fault.Is(err, fault.Corruption) && !fault.Is(err, fault.BadFunction) {
			t.Fatal(err)
		}
	})
}

// FuzzValues reduces any text as a value.
func FuzzValues(f *testing.F) {
	for _, value := range []string{`1`, `-0`, `1e400`, `[1,2.5]`, `[1`, `{"a":{"b":[1]}}`, `{"a":`, `"x`, ``, `1x`, `--1`, `1.`} {
		f.Add([]byte(value), []byte(`1`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		rows := rowsOf(t, string(a), string(b))
		for _, source := range sources() {
			fn := function(t, source)
			state, err := fn.Reduce(nil, rows)
			if err != nil {
				continue // text that is no JSON cannot be ranked
			}
			if _, err = fn.Final(nil, state); err != nil && !fault.Is(err, fault.BadFunction) {
				t.Fatalf("%s: %v", source, err)
			}
		}
	})
}
