package view

import (
	"fmt"
	"slices"
	"testing"

	"divan/shard"
)

func TestRowsAndReduce(t *testing.T) {
	n := start(t)
	var edits []shard.Edit
	for i := range 300 {
		edits = append(edits, edit(fmt.Sprintf("d%03d", i), fmt.Sprintf(`{"n":%d,"tag":["a",%d]}`, i, i%3)))
	}
	n.put(1, edits...)
	d := define(t, `{"views":{
		"n":{"map":"function (doc) { emit(doc.n, doc.n * 2); }","reduce":"_sum"},
		"tag":{"map":"function (doc) { emit(doc.tag, 1); }","reduce":"_count"}}}`)
	a := n.query(request(d, "n"))
	if a.Total != 300 || a.Offset != 0 || len(a.rows) != 300 || a.rows[7] != "d007 7 14" || a.Seq != 300 {
		t.Fatalf("%+v", a)
	}
	req := request(d, "n")
	req.Ranges = []KeyRange{{Lo: Bound{Key: key(t, "10")}, Hi: Bound{Key: key(t, "12")}}}
	if a = n.query(req); a.Offset != 10 || !slices.Equal(a.rows, []string{"d010 10 20", "d011 11 22", "d012 12 24"}) {
		t.Errorf("%+v", a)
	}
	req.Desc = true
	if a = n.query(req); a.Offset != 287 || !slices.Equal(a.rows, []string{"d012 12 24", "d011 11 22", "d010 10 20"}) {
		t.Errorf("%+v", a)
	}
	req.Reduce = true
	if a = n.query(req); !slices.Equal(a.rows, []string{"null 66"}) {
		t.Errorf("%+v", a)
	}
	req = request(d, "tag")
	req.Reduce, req.GroupLevel = true, 1
	if a = n.query(req); !slices.Equal(a.rows, []string{`["a"] 300`}) {
		t.Errorf("%+v", a)
	}
	req.GroupLevel = GroupExact
	if a = n.query(req); !slices.Equal(a.rows, []string{`["a",0] 100`, `["a",1] 100`, `["a",2] 100`}) {
		t.Errorf("%+v", a)
	}
	n.put(2, edit("d010", `{"n":1000}`), shard.Edit{ID: "d011", Deleted: true})
	req = request(d, "n")
	req.Ranges = []KeyRange{{Lo: Bound{Key: key(t, "9")}, Hi: Bound{Key: key(t, "12")}}, {Lo: Bound{Key: key(t, "500")}}}
	if a = n.query(req); a.Total != 299 || !slices.Equal(a.rows, []string{"0: d009 9 18", "0: d012 12 24", "1: d010 1000 2000"}) {
		t.Errorf("%+v", a)
	}
}
