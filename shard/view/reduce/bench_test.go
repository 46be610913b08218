package reduce

import (
	"strconv"
	"testing"
)

// BenchmarkReduce has blocks of 100 rows; ns/op is that of a block.
func BenchmarkReduce(b *testing.B) {
	for _, bm := range []struct{ source, value string }{
		{"_count", "%"},
		{"_sum", "%"},
		{"_sum", "%.25"},
		{"_stats", "%"},
		{"_stats", "%.25"},
		{"_approx_count_distinct", "null"},
		{"_top_10", "%"},
		{"_first", "%"},
		{"_sum", "[%,1]"},
		{"_sum", `{"a":%}`},
	} {
		b.Run(bm.source+" "+bm.value, func(b *testing.B) {
			f := function(b, bm.source)
			rows := benchRows(b, bm.value)
			var dst []byte
			var err error
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = f.Reduce(dst[:0], rows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
		})
	}
}

func benchRows(b *testing.B, value string) []Row {
	b.Helper()
	values := make([]string, 100)
	for i := range values {
		for _, c := range value {
			if c == '%' {
				values[i] += strconv.Itoa(i * 7919 % 10007)
			} else {
				values[i] += string(c)
			}
		}
	}
	return rowsOf(b, values...)
}

// BenchmarkRereduce has 30 states, as of a range query.
func BenchmarkRereduce(b *testing.B) {
	for _, source := range []string{"_count", "_sum", "_stats", "_approx_count_distinct", "_top_10"} {
		b.Run(source, func(b *testing.B) {
			f := function(b, source)
			state, err := f.Reduce(nil, benchRows(b, "%"))
			if err != nil {
				b.Fatal(err)
			}
			states := make([][]byte, 30)
			for i := range states {
				states[i] = state
			}
			var dst, text []byte
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = f.Rereduce(dst[:0], states); err != nil {
					b.Fatal(err)
				}
				if text, err = f.Final(text[:0], dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
