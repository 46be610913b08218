package reduce

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/collate"
	"divan/storage/fault"
)

func function(tb testing.TB, source string) Function {
	tb.Helper()
	f, err := Builtin(source)
	if err != nil || f == nil {
		tb.Fatalf("%s: %v %v", source, f, err)
	}
	return f
}

// rowsOf makes rows with the keys 0, 1, … of values.
func rowsOf(tb testing.TB, values ...string) []Row {
	tb.Helper()
	rows := make([]Row, len(values))
	for i, v := range values {
		rows[i] = row(tb, strconv.Itoa(i), fmt.Sprintf("doc%03d", i), v)
	}
	return rows
}

func row(tb testing.TB, key, id, value string) Row {
	tb.Helper()
	sort, err := collate.AppendKey(nil, []byte(key))
	if err != nil {
		tb.Fatal(err)
	}
	return Row{Sort: sort, Key: []byte(key), ID: id, Value: []byte(value)}
}

// result reduces all rows at once; an error of Final is its text.
func result(tb testing.TB, f Function, rows []Row) string {
	tb.Helper()
	state, err := f.Reduce(nil, rows)
	if err != nil {
		tb.Fatal(err)
	}
	return final(tb, f, state)
}

func final(tb testing.TB, f Function, state []byte) string {
	tb.Helper()
	text, err := f.Final(nil, state)
	if fault.Is(err, fault.BadFunction) {
		return "error: " + err.Error()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func TestResults(t *testing.T) {
	const mixed = `{"error":"builtin_reduce_error","reason":"` + sumReason + `","caused_by":`
	for _, tc := range []struct {
		source string
		values string // one a line
		want   string
	}{
		{"_sum", "10\n20\n5.5\n-4\n100\n0", "131.5"},
		{"_sum", "5.5\n4.5", "10.0"},
		{"_sum", "0.1\n0.2", "0.30000000000000004"},
		{"_sum", "9007199254740992\n1", "9007199254740993"},
		{"_sum", "9223372036854775807\n9223372036854775807", "18446744073709551614"},
		{"_sum", "-9223372036854775808\n-1", "-9223372036854775809"},
		{"_sum", "123456789012345678901234567890\n1\n-2", "123456789012345678901234567889"},
		{"_sum", "170141183460469231731687303715884105727\n1\n9223372036854775807", "170141183460469231740910675752738881535"},
		{"_sum", "9007199254740993\n0.5\n-0.5", "9007199254740992.0"}, // the float nearest to an odd integer
		{"_sum", "1e308\n1e308\n-1e308", "1e+308"},
		{"_sum", "1e308\n1e308", "null"},
		{"_sum", "1e16\n1\n-1e16", "1.0"},
		{"_sum", "-0.0\n0.0", "0.0"},
		{"_sum", "[1,2]\n[3,4]\n[5]\n[1,1,1]\n[0,0]\n[2,2]", "[12,9,1]"},
		{"_sum", "[1,2]\n3", "[4,2]"},
		{"_sum", "3\n[1,2]", "[4,2]"},
		{"_sum", "[]", "[0]"},
		{"_sum", "[]\n[]", "[0]"},
		{"_sum", "{}", "{}"},
		{"_sum", `{"ann":1}` + "\n" + `{"ann":2,"bob":1}` + "\n" + `{"bob":10}`, `{"ann":3,"bob":11}`},
		{"_sum", `{"c":{"x":1,"y":2}}` + "\n" + `{"c":{"y":5}}`, `{"c":{"x":1,"y":7}}`},
		{"_sum", `{"c":{"x":[1]}}` + "\n" + `{"c":{"x":2.5}}`, `{"c":{"x":[3.5]}}`},
		{"_sum", `{"a":"once","b":[],"c":["x"],"d":null}`, `{"a":"once","b":[],"c":["x"],"d":null}`},
		{"_sum", `{"a":"once"}` + "\n" + `{"a":1}`, mixed + `"once"}`},
		{"_sum", `1` + "\n" + `"n/a"`, mixed + `"n/a"}`},
		{"_sum", `null`, mixed + `null}`},
		{"_sum", `[1,"x"]`, `[1,"x"]`},
		{"_sum", `[1,["x"]]`, `[1,["x"]]`},
		{"_sum", `["x",1]`, mixed + `["x",1]}`},
		{"_sum", `[1,"x"]` + "\n" + `1`, mixed + `[1,"x"]}`},
		{"_sum", `5` + "\n" + `{"a":1}`, mixed + `5}`},
		{"_sum", `{"a":[1]}` + "\n" + `{"a":{"b":1}}`, mixed + `[1]}`},
		{"_sum", `7` + "\n" + `{"error":"builtin_reduce_error","reason":"r"}`, `{"error":"builtin_reduce_error","reason":"r"}`},
		{"_sum", `{"error":"other"}`, `{"error":"other"}`},
		{"_summary", "1\n2", "3"},
		{"_count", "1\nnull\n\"x\"", "3"},
		{"_stats", "10\n20\n5.5\n-4\n100\n0", `{"sum":131.5,"count":6,"min":-4,"max":100,"sumsqr":10546.25}`},
		{"_stats", "1\n2", `{"sum":3,"count":2,"min":1,"max":2,"sumsqr":5}`},
		{"_stats", "1.0\n1", `{"sum":2.0,"count":2,"min":1,"max":1,"sumsqr":2.0}`},
		{"_stats", "9223372036854775807\n-9223372036854775808", `{"sum":-1,"count":2,"min":-9223372036854775808,"max":9223372036854775807,"sumsqr":170141183460469231713240559642174554113}`},
		{"_stats", "9007199254740993\n9007199254740992.0", `{"sum":18014398509481984.0,"count":2,"min":9007199254740992.0,"max":9007199254740993,"sumsqr":1.622592768292134e+32}`},
		{"_stats", "1e200", `{"sum":1e+200,"count":1,"min":1e+200,"max":1e+200,"sumsqr":null}`},
		{"_stats", "[1,2]\n[3,5]", `[{"sum":4,"count":2,"min":1,"max":3,"sumsqr":10},{"sum":7,"count":2,"min":2,"max":5,"sumsqr":29}]`},
		{"_stats", `{"sum":10,"count":2,"min":3,"max":7,"sumsqr":58}` + "\n" + `1`, `{"sum":11,"count":3,"min":1,"max":7,"sumsqr":59}`},
		{"_stats", `"x"`, `error: non-numeric _stats input: <<120>>`},
		{"_stats", `[1,"x"]`, `error: non-numeric _stats input: <<120>>`},
		{"_stats", `null`, `error: non-numeric _stats input: null`},
		{"_stats", "null\n0", `error: The _stats function requires that map values be numbers or arrays of numbers, not 'null'`},
		{"_stats", "1\n" + `"x"`, `error: ` + statsReason + `'<<"x">>'`},
		{"_stats", "[1]\n" + `["x"]`, `error: ` + statsReason + `'<<"x">>'`},
		{"_stats", "1\ntrue", `error: ` + statsReason + `'true'`},
		{"_stats", "1\n\"\"", `error: ` + statsReason + `'<<>>'`},
		{"_stats", "1\n\"\\u0001\"", `error: ` + statsReason + `'<<1>>'`},
		{"_stats", "1\n[1]", `error: The _stats function requires that map values be numbers or arrays of numbers, not both`},
		{"_stats", "[1]\n[1,2]", `error: The _stats function requires that map values be numbers or arrays of numbers, not arrays of different lengths`},
		{"_stats", "[1,2]\n[1]", `error: The _stats function requires that map values be numbers or arrays of numbers, not arrays of different lengths`},
		{"_stats", `{"sum":1}`, `error: user _stats input missing required field count ([{<<"sum">>,1}])`},
		{"_stats", `{"sum":1,"count":"1","min":0,"max":0,"sumsqr":0}`, `error: non-numeric _stats input received for count: <<49>>`},
		{"_approx_count_distinct", "1\n1\n1", "3"},
		{"_top_2", "7\n3\n12\n\"n/a\"\n1\n[5]\nnull\n12", `[[5],"n/a"]`},
		{"_top_2", "7\n3\n12\n12", `[12,7]`},
		{"_bottom_3", "7\n3\n12\n\"n/a\"\n1\n[5]\nnull\n12", `[null,1,3]`},
		{"_bottom_3", "12\n12.0", `[12]`},
		{"_top_100", "1", `[1]`},
		{"_first", "\"a\"\n\"b\"", `"a"`},
		{"_last", "\"a\"\n\"b\"", `"b"`},
	} {
		f := function(t, tc.source)
		if got := result(t, f, rowsOf(t, strings.Split(tc.values, "\n")...)); got != tc.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", tc.source, strings.ReplaceAll(tc.values, "\n", " "), got, tc.want)
		}
	}
}

func TestNoRows(t *testing.T) {
	for source, want := range map[string]string{
		"_sum": "0", "_count": "0", "_stats": `{"sum":0,"count":0,"min":0,"max":0,"sumsqr":0}`,
		"_approx_count_distinct": "0", "_top_1": "[]", "_bottom_1": "[]", "_first": "null", "_last": "null",
	} {
		f := function(t, source)
		if got := result(t, f, nil); got != want {
			t.Errorf("%s of nothing is %s, want %s", source, got, want)
		}
		// what has no rows changes nothing
		empty, err := f.Reduce(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, err := f.Reduce(nil, rowsOf(t, "7"))
		if err != nil {
			t.Fatal(err)
		}
		both, err := f.Rereduce(nil, [][]byte{empty, one, empty})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := final(t, f, both), final(t, f, one); got != want {
			t.Errorf("%s: %s beside nothing, %s alone", source, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for source, reason := range map[string]string{
		"_top_0":      "rank value must be between 1 and 100",
		"_top_101":    "rank value must be between 1 and 100",
		"_bottom_-1":  "rank value must be between 1 and 100",
		"_bottom_x":   "invalid rank reducer",
		"_top_":       "invalid rank reducer",
		"_average":    "`_average` is not a supported reduce function.",
		"_top":        "`_top` is not a supported reduce function.",
		"_":           "`_` is not a supported reduce function.",
		" _sum":       "",
		"function(){": "",
		"":            "",
	} {
		f, err := Builtin(source)
		if f != nil || fault.Reason(err) != reason || reason != "" && !fault.Is(err, fault.InvalidDesignDoc) {
			t.Errorf("%q: %v %v, want %q", source, f, err, reason)
		}
	}
}

func TestLimitOfSums(t *testing.T) {
	values := make([]string, 300)
	for i := range values {
		values[i] = fmt.Sprintf(`{"a field of document number %d":%d}`, i, i)
	}
	rows := rowsOf(t, values...)
	got := result(t, function(t, "_sum"), rows)
	if !strings.HasPrefix(got, `{"error":"builtin_reduce_error","reason":"Reduce output must shrink more rapidly: input size: `) || !strings.HasSuffix(got, ` context: "}`) {
		t.Errorf("got %.200s", got)
	}
	f := function(t, "_sum")
	state, err := f.Reduce(nil, rows)
	if err != nil {
		t.Fatal(err)
	}
	one, err := f.Reduce(nil, rows[:1])
	if err != nil {
		t.Fatal(err)
	}
	both, err := f.Rereduce(nil, [][]byte{one, state})
	if err != nil || final(t, f, both) != got {
		t.Errorf("the error does not spread: %.200s %v", both, err)
	}
	if len(state) > 200 {
		t.Errorf("the state of an error has %d bytes", len(state))
	}
	off, err := BuiltinWithin("_sum", func() Limit { return Limit{Off: true} })
	if err != nil {
		t.Fatal(err)
	}
	if all := result(t, off, rows); strings.Contains(all, "error") || len(all) < 9000 {
		t.Errorf("without a limit: %.200s", all)
	}
	same := rowsOf(t, make([]string, 300)...)
	for i := range same {
		same[i].Value = []byte(values[0])
	}
	if got := result(t, f, same); strings.Contains(got, "error") {
		t.Errorf("what shrinks: %.200s", got)
	}
}

func TestFirstAndLastOfEqualKeys(t *testing.T) {
	rows := []Row{
		row(t, `1`, "b", `"b1"`), row(t, `1`, "b", `"b2"`), row(t, `1`, "c", `"c"`), row(t, `1`, "d", `"d1"`), row(t, `1`, "d", `"d2"`),
	}
	for source, want := range map[string]string{"_first": `"b1"`, "_last": `"d2"`} {
		f := function(t, source)
		var states [][]byte
		for i := range rows {
			state, err := f.Reduce(nil, rows[i:i+1])
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, state)
		}
		state, err := f.Rereduce(nil, states)
		if err != nil {
			t.Fatal(err)
		}
		if got := final(t, f, state); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

// TestDistinctError has the error that a precision of 11 bits promises: 2.3 %
// is one standard deviation.
func TestDistinctError(t *testing.T) {
	f := function(t, "_approx_count_distinct")
	for _, n := range []int{1, 2, 3, 10, 30, 100, 1000, 3000, 10_000, 100_000, 1_000_000} {
		var states [][]byte
		var rows []Row
		for i := range n {
			sort := collate.AppendString(nil, "key "+strconv.Itoa(i))
			if rows = append(rows, Row{Sort: sort}, Row{Sort: sort}); len(rows) >= 10_000 || i == n-1 {
				state, err := f.Reduce(nil, rows)
				if err != nil {
					t.Fatal(err)
				}
				states, rows = append(states, state), rows[:0]
			}
		}
		state, err := f.Rereduce(nil, states)
		if err != nil {
			t.Fatal(err)
		}
		got, err := strconv.Atoi(final(t, f, state))
		if err != nil {
			t.Fatal(err)
		}
		allowed := max(1, 0.07*float64(n))
		if n <= 30 {
			allowed = 0
		}
		if math.Abs(float64(got-n)) > allowed {
			t.Errorf("%d of %d distinct keys", got, n)
		}
	}
}

// TestSumOfFloats compares with sums of unlimited precision, of floats of every
// magnitude.
func TestSumOfFloats(t *testing.T) {
	seed := uint64(1)
	next := func() float64 {
		for {
			seed = seed*6364136223846793005 + 1442695040888963407
			f := math.Float64frombits(seed ^ seed>>29)
			if !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f
			}
		}
	}
	for range 2000 {
		var n number
		exact := new(big.Float).SetPrec(3000)
		for range 40 {
			f := next()
			n.addFloat(f)
			exact.Add(exact, big.NewFloat(f))
			if len(n.parts) > 45 || len(n.huge) > 45 {
				t.Fatalf("%d and %d parts", len(n.parts), len(n.huge))
			}
		}
		want, _ := exact.Float64()
		if got := n.scalar(); got.f != want {
			t.Fatalf("got %v, want %v", got.f, want)
		}
	}
}

// TestRound: sums that lie in the middle between two floats, or nearly, with integers
// among them.
func TestRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n number
		exact := new(big.Float).SetPrec(3000)
		for range rapid.IntRange(1, 8).Draw(t, "numbers") {
			if rapid.IntRange(0, 3).Draw(t, "integer") == 0 {
				i := rapid.Int64().Draw(t, "i")
				n.addInt(i)
				exact.Add(exact, new(big.Float).SetInt64(i))
				continue
			}
			f := math.Ldexp(float64(rapid.IntRange(-3, 3).Draw(t, "digits")), rapid.IntRange(-3, 3).Draw(t, "times")*53+rapid.IntRange(-1, 1).Draw(t, "and"))
			n.addFloat(f)
			exact.Add(exact, new(big.Float).SetFloat64(f))
		}
		n.float = true
		want, _ := exact.Float64()
		if got := n.scalar(); got.f != want {
			t.Fatalf("got %v, want %v", got.f, want)
		}
	})
}

func TestScalars(t *testing.T) {
	for _, text := range []string{"", "-", ".5", "1.2.3", "1-2", "--1", "x", "null", "1x", "+1", "0x10", "1_000", "Infinity", "-Infinity", "NaN"} {
		if s, ok := parseScalar([]byte(text)); ok {
			t.Errorf("%q is %+v", text, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})\.[0-9]{1,17}`), numbers()).Draw(t, "number")
		s, ok := parseScalar([]byte(text))
		want, err := strconv.ParseFloat(text, 64)
		if got, _ := s.exact().Float64(); !ok || err == nil && got != want || s.float != strings.ContainsAny(text, ".eE") {
			t.Fatalf("%s is %+v %v, want %v", text, s, ok, want)
		}
	})
}
