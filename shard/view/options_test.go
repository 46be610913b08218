package view

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/view/reduce"
	"divan/storage/collate"
)

func TestDefinitionOptions(t *testing.T) {
	n := start(t)
	n.put(1,
		edit("a", `{"k":"b"}`), edit("b", `{"k":"A"}`), edit("c", `{"k":null}`),
		edit("_design/x", `{"k":1}`), shard.Edit{ID: "gone", Deleted: true},
	)
	for _, c := range []struct{ options, view, want string }{
		{`{}`, `{}`, `c null 0|b "A" 0|a "b" 0`},
		{`{"include_design":true}`, `{}`, `c null 0|_design/x 1 0|b "A" 0|a "b" 0`},
		{`{"local_seq":true}`, `{}`, `c null 3|b "A" 2|a "b" 1`},
		{`{"include_design":true}`, `{"collation":"raw"}`, `_design/x 1 0|c null 0|b "A" 0|a "b" 0`},
	} {
		d := define(t, `{"options":`+c.options+`,"views":{"v":{"options":`+c.view+`,"map":"function (doc) { emit(doc.k, doc._local_seq || 0); }"}}}`)
		if a := n.query(request(d, "v")); strings.Join(a.rows, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.options, a.rows, c.want)
		}
	}
}

func TestPartitions(t *testing.T) {
	n := startOn(t, vfs.NewMem())
	n.create(true)
	n.put(1, edit("red:1", `{"k":2}`), edit("red:2", `{"k":1}`), edit("blue:1", `{"k":1}`), edit("redder:1", `{"k":0}`))
	d, err := Parse([]byte(`{"views":{"v":{"map":"function (doc) { emit(doc.k, 1); }","reduce":"_count"}}}`), true)
	must(t, err)
	req := request(d, "v")
	req.Partition = "red"
	a := n.query(req)
	if a.Total != 2 || !slices.Equal(a.rows, []string{"red:2 1 1", "red:1 2 1"}) {
		t.Errorf("%+v", a)
	}
	req.Desc = true
	req.Ranges = []KeyRange{{Hi: Bound{Key: key(t, "1")}}}
	if a = n.query(req); a.Offset != 1 || !slices.Equal(a.rows, []string{"red:2 1 1"}) {
		t.Errorf("%+v", a)
	}
	req.Ranges, req.Reduce, req.GroupLevel = nil, true, GroupExact
	if a = n.query(req); !slices.Equal(a.rows, []string{"2 1", "1 1"}) {
		t.Errorf("%+v", a)
	}
	req.Partition = "green"
	if a = n.query(req); len(a.rows) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestQueryLanguage(t *testing.T) {
	n := start(t)
	n.put(1, edit("a", `{"b":2,"c":1}`), edit("b", `{"b":1,"c":5}`), edit("c", `{"c":1}`), edit("_design/x", `{"b":1,"c":1}`))
	d := define(t, `{"language":"query","views":{
		"bc":{"map":{"fields":{"b":"asc","c":"asc"},"partial_filter_selector":{}},"reduce":"_count"},
		"some":{"map":{"fields":{"c":"asc"},"partial_filter_selector":{"b":{"$gt":1}}},"reduce":"_count"}}}`)
	if a := n.query(request(d, "bc")); !slices.Equal(a.rows, []string{"b [1,5] null", "a [2,1] null"}) {
		t.Errorf("%v", a.rows)
	}
	if a := n.query(request(d, "some")); !slices.Equal(a.rows, []string{"a [1] null"}) {
		t.Errorf("%v", a.rows)
	}
}

// TestScriptReduce: JavaScript reduces, in blocks and above them, and what fails
// in one is seen by who asks for it only.
func TestScriptReduce(t *testing.T) {
	n := start(t)
	n.put(1, numbered(0, 3000)...)
	d := define(t, `{"views":{
		"sum":{"map":"function (doc) { emit(doc.n, doc.n); }","reduce":"function (keys, values, rereduce) { return sum(values); }"},
		"keys":{"map":"function (doc) { emit(doc.n, doc.n); }","reduce":"function (keys, values, rereduce) { if (rereduce) { return sum(values); } return keys.filter(function (k) { return k[1] === 'd00007'; }).length; }"},
		"long":{"map":"function (doc) { emit(doc.n, 'some text'); }","reduce":"function (keys, values, rereduce) { return rereduce ? [].concat.apply([], values) : values; }"}}}`)
	ask := func(view string) string {
		t.Helper()
		req := request(d, view)
		req.Reduce = true
		return strings.Join(n.query(req).rows, "|")
	}
	if got := ask("sum"); got != "null 4498500" {
		t.Errorf("sum: %s", got)
	}
	if got := ask("keys"); got != "null 1" {
		t.Errorf("keys: %s", got)
	}
	long := request(d, "long")
	long.Reduce = true
	var overflow *reduce.OverflowError
	if _, err := n.tryQuery(long); !errors.As(err, &overflow) || !strings.HasPrefix(overflow.Reason, "Reduce output must shrink more rapidly: input size: ") {
		t.Errorf("a reduction that does not reduce: %v", err)
	}
	n.checkBlocks(t, d)
	n.put(2, edit("d00007", `{"n":0}`))
	if got := ask("sum"); got != "null 4498493" {
		t.Errorf("sum: %s", got)
	}
}

// TestReduceLimitOff: what is long stays.
func TestReduceLimitOff(t *testing.T) {
	n := start(t)
	n.views.limit = func() reduce.Limit { return reduce.Limit{Threshold: 5000, Ratio: 2, LogOnly: true} }
	n.put(1, numbered(0, 1000)...)
	d := define(t, `{"views":{"long":{"map":"function (doc) { emit(doc.n, 'some text'); }",
		"reduce":"function (keys, values, rereduce) { return rereduce ? [].concat.apply([], values) : values; }"}}}`)
	req := request(d, "long")
	req.Reduce = true
	if a := n.query(req); len(a.rows) != 1 || len(a.rows[0]) != len("null [")+1000*len(`"some text",`) {
		t.Errorf("%d bytes", len(a.rows[0]))
	}
}

// TestRowsOfOneKeyStayTogether: no batch ends between rows of one key and
// document, so that a reader can go on behind the last row elsewhere.
func TestRowsOfOneKeyStayTogether(t *testing.T) {
	n := start(t)
	n.put(1, edit("a", `{}`), edit("b", `{}`))
	d := define(t, `{"views":{"v":{"map":"function (doc) { for (var i = 0; i < 200; i++) { emit('k', i); } }"}}}`)
	req := request(d, "v")
	req.Limit = 3
	s, err := n.views.Query(t.Context(), req)
	must(t, err)
	defer s.Close()
	var b Batch
	for _, id := range []string{"a", "b"} {
		more, err := s.Next(&b)
		must(t, err)
		if len(b.Rows) != 200 || b.Rows[0].ID != id || b.Rows[199].ID != id || more != (id == "a") {
			t.Fatalf("%d rows, more %t", len(b.Rows), more)
		}
		for i := range b.Rows {
			if string(b.Rows[i].Value) != strconv.Itoa(i) {
				t.Fatalf("row %d is %s", i, b.Rows[i].Value)
			}
		}
	}
}

// TestOrderVersion: an index that was made with another collation is built anew.
func TestOrderVersion(t *testing.T) {
	st := state{trees: make([]treeState, 2)}
	st.trees[1] = treeState{rows: 300, bytes: -5, height: 2}
	got, err := readState(stored(st.append(nil, collate.Version)), 2, collate.Version)
	if err != nil || got.blocks || got.trees[1] != st.trees[1] {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readState(stored(st.append(nil, "older")), 2, collate.Version); err == nil {
		t.Error("another collation is taken")
	}
	old := st.append(nil, "")
	old[0] = stateVersion + 1
	if _, err := readState(stored(old), 2, ""); err == nil {
		t.Error("another version is taken")
	}
}

// stored is a value under every key.
type stored []byte

func (s stored) Get(dst, _ []byte) ([]byte, bool, error) { return append(dst, s...), true, nil }
