package view

import (
	"testing"

	"divan/storage/fault"
)

func TestDefinition(t *testing.T) {
	same := []string{
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}},"options":{"include_design":false}}`,
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum","options":{}}},"options":{"collation":"raw"}}`, // without effect
		`{"language":"javascript","views":{"a":{"reduce":"_sum","map":"m1","x":1},"b":{"map":"m2"}},"filters":{"f":"x"}}`,
	}
	var signature string
	for _, body := range same {
		d, err := Parse([]byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		if signature != "" && d.Signature != signature {
			t.Errorf("%s: another signature", body)
		}
		signature = d.Signature
		again, err := ParseText(d.Text)
		if err != nil || again.Signature != signature || string(again.Text) != string(d.Text) {
			t.Errorf("text read again: %+v, %v", again, err)
		}
		if v, ok := again.View("a"); !ok || v.Map != "m1" || v.Reduce != "_sum" {
			t.Errorf("view a is %+v", v)
		}
		if _, ok := again.View("lib"); ok {
			t.Error("lib is a view")
		}
	}
	other := []string{
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1"}}}`,
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1 ","reduce":"_sum"}}}`,
		`{"views":{"c":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}}}`,
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}},"options":{"include_design":true}}`,
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}},"options":{"local_seq":true}}`,
		`{"views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum","options":{"collation":"raw"}}}}`,
		`{"views":{"lib":{"x":"1"},"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}}}`,
		`{"language":"x","views":{"b":{"map":"m2"},"a":{"map":"m1","reduce":"_sum"}}}`,
	}
	seen := map[string]bool{signature: true}
	for _, body := range other {
		d, err := Parse([]byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		if seen[d.Signature] {
			t.Errorf("%s: a signature that another definition has", body)
		}
		seen[d.Signature] = true
	}
}

func TestDefinitionOfPartitionedDatabase(t *testing.T) {
	for body, want := range map[string]bool{
		`{"views":{"a":{"map":"m"}}}`:                                 true,
		`{"views":{"a":{"map":"m"}},"options":{"partitioned":true}}`:  true,
		`{"views":{"a":{"map":"m"}},"options":{"partitioned":false}}`: false,
	} {
		d, err := Parse([]byte(body), true)
		if err != nil || d.Partitioned != want {
			t.Errorf("%s: partitioned is %t, %v", body, d.Partitioned, err)
		}
		if again, err := ParseText(d.Text); err != nil || again.Partitioned != want {
			t.Errorf("%s: partitioned is lost", body)
		}
		if d, err := Parse([]byte(body), false); err != nil || d.Partitioned {
			t.Errorf("%s: partitioned in a database that is not: %v", body, err)
		}
	}
}

func TestDefinitionWithoutViews(t *testing.T) {
	for _, body := range []string{`{}`, `{"views":{}}`, `{"views":{"lib":{"a":"1"}}}`, `{"language":"query"}`} {
		if d, err := Parse([]byte(body), false); d != nil || err != nil {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
	for _, body := range []string{`{"views":{"a":1}}`, `{"views":{"a":{}}}`, `{"views":{"a":{"map":{"fields":{}}}}}`} {
		if _, err := Parse([]byte(body), false); !fault.Is(err, fault.InvalidDesignDoc) {
			t.Errorf("%s: %v", body, err)
		}
	}
	d, err := Parse([]byte(`{"language":"query","views":{"i":{"map":{"fields":{"b":"asc","a":"asc"}},"reduce":"_count"}}}`), false)
	if err != nil || d.Views[0].Map != `{"fields":{"b":"asc","a":"asc"}}` {
		t.Errorf("%+v, %v", d, err)
	}
}
