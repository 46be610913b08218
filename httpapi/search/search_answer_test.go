package search

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	shardsearch "divan/shard/search"
	"divan/shard/search/postings"
	"divan/storage/fault"
)

// TestFields: stored fields are in the order of their first values; several of one name are a
// list.
func TestFields(t *testing.T) {
	h := &shardsearch.Hit{}
	for i, name := range []string{"a", "b", "a", "c", "a", "b"} {
		h.Fields = append(h.Fields, postings.Stored{Name: name, Value: strconv.AppendInt(nil, int64(i), 10)})
	}
	for lastFirst, want := range map[bool]string{
		true:  `{"a":[4,2,0],"b":[5,1],"c":3}`,
		false: `{"a":[0,2,4],"b":[1,5],"c":3}`,
	} {
		if got := string(appendFields(nil, h, lastFirst)); got != want {
			t.Errorf("last first %v: %s in place of %s", lastFirst, got, want)
		}
	}
	if got := string(appendFields(nil, &shardsearch.Hit{}, true)); got != "{}" {
		t.Errorf("no fields: %s", got)
	}
}

// TestManyFields: a document with very many stored fields is no more work than its fields:
// comparing each name with all others would take longer than tests may.
func TestManyFields(t *testing.T) {
	h := &shardsearch.Hit{}
	for i := range 400_000 {
		h.Fields = append(h.Fields, postings.Stored{Name: "f" + strconv.Itoa(i), Value: []byte("1")})
	}
	if got := appendFields(nil, h, true); !json.Valid(got) {
		t.Errorf("%d fields are no JSON", len(h.Fields))
	}
}

// TestManyDrilldowns: a list of very many fields is refused where it is read.
func TestManyDrilldowns(t *testing.T) {
	read := func(n int) error {
		list := []byte{'['}
		for i := range n {
			list = fmt.Appendf(list, `["f%d","x"],`, i)
		}
		list[len(list)-1] = ']'
		p := &searchParams{}
		return p.addDrilldown(&param{name: "drilldown", value: list})
	}
	if err := read(shardsearch.MaxParts); err != nil {
		t.Errorf("%d fields: %v", shardsearch.MaxParts, err)
	}
	if err := read(shardsearch.MaxParts + 1); !fault.Is(err, fault.BadRequest) {
		t.Errorf("%d fields: %v", shardsearch.MaxParts+1, err)
	}
}

// TestNamedTwice: what becomes a member of the answer is there once.
func TestNamedTwice(t *testing.T) {
	got, err := (&param{name: "counts", value: []byte(`["b","a","b"]`)}).distinctTexts()
	if err != nil || fmt.Sprint(got) != "[b a]" {
		t.Errorf("%v, %v", got, err)
	}
}
