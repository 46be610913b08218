package postings

import "testing"

// TestTypesOfKept: only documents that are kept say of which type a field is.
func TestTypesOfKept(t *testing.T) {
	var v Inverter
	say := func(id, field string, f FieldType) error {
		v.Begin(id)
		return v.Type(field, f)
	}
	if err := say("a", "x", StringType); err != nil {
		t.Fatal(err)
	}
	v.Keep()
	if err := say("b", "y", StringType); err != nil {
		t.Fatal(err)
	}
	if err := v.Type("x", DoubleType); err == nil {
		t.Fatal("two types")
	}
	if err := say("b", "y", DoubleType); err != nil {
		t.Errorf("a document that was not kept counts: %v", err)
	}
	v.Keep()
	if err := say("c", "z", TextType); err != nil {
		t.Fatal(err)
	}
	types := v.Finish().types
	if len(types) != 2 || types[0].name != "x" || types[1].name != "y" || types[1].Type != DoubleType {
		t.Errorf("%+v", types)
	}
}
