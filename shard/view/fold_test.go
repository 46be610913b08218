package view

import (
	"fmt"
	"strings"
	"testing"
)

// A block of large values, and one of blocks with large states, never holds them all.
func TestBlocksOfLargeValues(t *testing.T) {
	for _, reduce := range []string{"_count", "function (keys, values, again) { return again ? sum(values) : values.length; }"} {
		n := start(t)
		d := define(t, `{"views":{"v":{"map":"function (doc) { emit([doc._id.length, doc._id], 'x'.repeat(300000)); }","reduce":"`+reduce+`"}}}`)
		use, x, err := n.views.acquire(t.Context(), copyName, n.views.spec(copyName, d))
		must(t, err)
		defer use.Release()
		c := newCollector(t.Context(), &x.trees[0])
		value := append(appendLengths(nil, 3, len(`"k"`)), `"k""`+strings.Repeat("x", 300_000)+`"`...)
		most := 0
		for range 100 {
			must(t, c.addRow(appendRowKey(nil, []byte("key"), "id", 0), value))
			most = max(most, c.bytes.bytes())
		}
		if got := c.finish(); string(got[0]) != "100" && reduce != "_count" || c.rows != 100 {
			t.Errorf("%s of 100 rows: %d rows, %q", reduce, c.rows, got)
		}
		if most > foldBytes+2*len(value) {
			t.Errorf("a block held %d bytes", most)
		}
	}
}

// The aggregates of large values agree with their rows, when they are made at once and
// when they are mended, and answer queries.
func TestAggregatesOfLargeValues(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	n := start(t)
	n.views.long = 40
	d := define(t, `{"views":{"v":{
		"map":"function (doc) { emit([doc._id.slice(0, 2), doc._id], 'x'.repeat(doc.size)); }",
		"reduce":"function (keys, values, again) { return again ? sum(values) : values.length; }"}}}`)
	write := func(from, to, pos, size int) {
		for i := from; i < to; i++ {
			n.put(pos, edit(fmt.Sprintf("d%03d", i), fmt.Sprintf(`{"size":%d}`, size)))
		}
	}
	write(0, 100, 1, 600_000)
	for round, want := range []string{"[null 100]", "[null 120]", "[null 120]"} {
		req := request(d, "v")
		req.Reduce = true
		if a := n.query(req); fmt.Sprint(a.rows) != want {
			t.Errorf("round %d: %v", round, a.rows)
		}
		req.GroupLevel = 1
		if a := n.query(req); round > 0 && fmt.Sprint(a.rows) != `[["d0"] 100 ["d1"] 20]` {
			t.Errorf("round %d: %v", round, a.rows)
		}
		n.checkBlocks(t, d)
		write(100, 120, 1+round, 500_000)
	}
}
