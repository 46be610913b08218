package designdocs

import (
	"slices"
	"testing"

	"divan/shard/index"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// TestWanted: a document wants its views and each of its full-text indexes once, even if something
// else in it cannot be read.
func TestWanted(t *testing.T) {
	d := one(nil, 1, `{"views":{"v":{"map":"f"}},"indexes":{"a":{"index":"f"},"b":{"index":"f"},"c":5},"nouveau":{"a":{"index":"f"}},"autoupdate":false}`).all[0]
	for _, partitioned := range []bool{false, true} {
		wanted := d.Wanted(partitioned)
		if len(wanted) != 3 || wanted[0].Type != index.View {
			t.Fatalf("wanted: %+v", wanted)
		}
		for _, w := range wanted {
			if !w.Manual || w.Design != "_design/d" {
				t.Errorf("wanted: %+v", w)
			}
		}
		for name, dialect := range map[string]syntax.Dialect{"a": syntax.Nouveau, "b": syntax.Search} {
			def, err := d.Search(dialect, name, partitioned)
			if err != nil || def.Partitioned != partitioned {
				t.Fatalf("%s: %+v, %v", name, def, err)
			}
			if !slices.ContainsFunc(wanted, func(w index.Definition) bool { return w.Name == def.Wanted().Name }) {
				t.Errorf("%s is not wanted", name)
			}
		}
	}
	if _, err := d.Search(syntax.Nouveau, "b", false); fault.Reason(err) != "b not found." {
		t.Error(err)
	}
	if _, err := d.Search(syntax.Search, "c", false); fault.KindOf(err) != fault.InvalidDesignDoc {
		t.Error(err)
	}
}

// TestSizeOfIndexes: what full-text indexes take counts, however small they are.
func TestSizeOfIndexes(t *testing.T) {
	few, many := one(nil, 1, `{"indexes":{"a":{}}}`), one(nil, 1, `{"indexes":{"a":{},"b":{},"c":{}},"nouveau":{"a":{}}}`)
	if more := many.size() - few.size(); more < 3*searchBytes {
		t.Errorf("three indexes count as %d bytes", more)
	}
}
