package listing

import (
	"testing"

	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

func TestRowEncoders(t *testing.T) {
	rev, short := doc.Rev{Pos: 1, ID: "11111111111111111111111111111111"}, doc.Rev{Pos: 2, ID: "a\"b"}
	for _, c := range []struct {
		row  shard.Row
		want string
	}{
		{shard.Row{ID: "a", Rev: rev}, `{"id":"a","key":"a","value":{"rev":"1-11111111111111111111111111111111"}`},
		{
			shard.Row{ID: "x\"\n", Rev: short, Deleted: true},
			`{"id":"x\"\n","key":"x\"\n","value":{"rev":"2-a\"b","deleted":true}`,
		},
	} {
		if got := string(appendDocRow(nil, &c.row)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func BenchmarkDocRow(b *testing.B) {
	row := shard.Row{ID: "0123456789abcdef0123456789abcdef", Rev: doc.Rev{Pos: 1, ID: "0123456789abcdef"}}
	buf := make([]byte, 0, core.StreamBuffer)
	b.ReportAllocs()
	for b.Loop() {
		if buf = appendDocRow(buf, &row); len(buf) > core.StreamBuffer-1024 {
			buf = buf[:0]
		}
	}
}
