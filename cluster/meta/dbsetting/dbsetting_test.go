package dbsetting

import (
	"maps"
	"testing"

	"divan/storage/fault"
)

// TestRows: each setting has a path of its own, and a standard value that it may have.
func TestRows(t *testing.T) {
	paths := map[string]bool{}
	for _, s := range All() {
		if paths[s.Path()] = true; s.Check(Standard()[s]) != nil || !s.Known() {
			t.Errorf("%s: %d", s.Path(), Standard()[s])
		}
		if got := fault.Reason(s.Check(rows[s].least - 1)); got != rows[s].refusal || got == "" {
			t.Errorf("%s: %q", s.Path(), got)
		}
	}
	if len(paths) != len(All()) || Setting(len(All())).Known() {
		t.Error(paths)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1000": 1000, "2147483647": 2147483647, "0": 0, "-1": 0, "2147483648": 0, "1.0": 0, `"7"`: 0, "": 0, "null": 0} {
		if got, err := RevsLimit.Parse([]byte(text)); (err == nil) != (want > 0) || err == nil && got != want || err != nil && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// TestChanged: what is written down is what differs from the standard.
func TestChanged(t *testing.T) {
	v := Standard().With(PurgedInfosLimit, 7)
	if got := maps.Collect(v.Changed()); len(got) != 1 || got[PurgedInfosLimit] != 7 {
		t.Error(got)
	}
	if got := maps.Collect(v.With(PurgedInfosLimit, Standard()[PurgedInfosLimit]).Changed()); len(got) != 0 {
		t.Error(got)
	}
}
