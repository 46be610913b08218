package keyspace

import "testing"

func TestTableEnd(t *testing.T) {
	for _, c := range []struct{ start, end string }{
		{"", ""},
		{"a\x00id", "a\x01"},
		{"b\x00id", "b\x01"},
		{"d\x00", "d\x01"},
		{"g\x00d\x01id", "g\x01"},
		{"h\x00id", "h\x01"},
		{"l\x00id", "r\x00"},
		{"m\x00counters", "r\x00"},
		{"p\x00", "r\x00"},
		{"q\x00", "r\x00"},
		{"r\x00id", "r\x01"},
		{"s\x00\x00", "s\x01"},
		{"u\x00", ""},
	} {
		if end := TableEnd([]byte(c.start)); string(end) != c.end {
			t.Errorf("TableEnd(%q) = %q, want %q", c.start, end, c.end)
		}
	}
}
