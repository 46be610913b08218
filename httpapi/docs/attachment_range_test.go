package docs

import (
	"slices"
	"testing"

	"divan/storage/fault"
)

func TestParseRanges(t *testing.T) {
	const size = 26
	for _, c := range []struct {
		header string
		want   []byteRange
		bad    bool
	}{
		{header: ""},
		{header: "letters=0-4"},
		{header: "bytes=x-y"},
		{header: "bytes=-"},
		{header: "bytes=5"},
		{header: "bytes=+1-+2"},
		{header: "bytes=0-"},
		{header: "bytes=1-2,0-"},
		{header: "bytes=0-4", want: []byteRange{{0, 4}}},
		{header: "bytes=20-", want: []byteRange{{20, 25}}},
		{header: "bytes=-3", want: []byteRange{{23, 25}}},
		{header: "bytes=-300", want: []byteRange{{0, 25}}},
		{header: "bytes=20-100", want: []byteRange{{20, 25}}},
		{header: "bytes=0-0, 5-6, 24-", want: []byteRange{{0, 0}, {5, 6}, {24, 25}}},
		{header: "bytes=0-3,2-5", want: []byteRange{{0, 3}, {2, 5}}},
		{header: "bytes=10-5", bad: true},
		{header: "bytes=26-", bad: true},
		{header: "bytes=30-40", bad: true},
		{header: "bytes=-0", bad: true},
		{header: "bytes=0-2,9-5", bad: true},
		{header: "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9"},
		{header: "bytes=99999999999999999999-"},
	} {
		got, err := parseRanges(c.header, size)
		if c.bad != fault.Is(err, fault.RangeNotSatisfiable) || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v; want %v, refused %v", c.header, got, err, c.want, c.bad)
		}
	}
}

// With If-Range a range is sent only of the attachment that the client has a
// part of.
func FuzzParseRanges(f *testing.F) {
	for _, s := range []string{"bytes=0-4", "bytes=-3", "bytes=20-", "bytes=0-0, 5-6, 24-", "bytes=9-5"} {
		f.Add(s, int64(26))
	}
	f.Add("bytes=0-1", int64(0))
	f.Fuzz(func(t *testing.T, header string, size int64) {
		size &= 1<<40 - 1
		ranges, err := parseRanges(header, size)
		if err != nil && len(ranges) > 0 {
			t.Fatalf("both ranges and %v", err)
		}
		if len(ranges) >= maxRanges {
			t.Fatalf("%d ranges", len(ranges))
		}
		for _, r := range ranges {
			if r.from < 0 || r.to >= size || r.length() <= 0 {
				t.Fatalf("%q of %d: range %d-%d", header, size, r.from, r.to)
			}
		}
	})
}
