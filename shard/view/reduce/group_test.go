package reduce

import (
	"bytes"
	"testing"
)

func TestGroups(t *testing.T) {
	for _, tc := range []struct {
		key   string
		level int
		want  string
	}{
		{`[2023,1,5]`, 0, `null`},
		{`[2023,1,5]`, 1, `[2023]`},
		{`[2023,1,5]`, 2, `[2023,1]`},
		{`[2023,1,5]`, 3, `[2023,1,5]`},
		{`[2023,1,5]`, 9, `[2023,1,5]`},
		{`[2023,1,5]`, Exact, `[2023,1,5]`},
		{`[[1,2],{"a":[3]},"x"]`, 2, `[[1,2],{"a":[3]}]`},
		{`[]`, 1, `[]`},
		{`"x"`, 1, `"x"`},
		{`{"a":[1,2]}`, 1, `{"a":[1,2]}`},
		{`null`, 1, `null`},
	} {
		got, err := AppendGroupKey(nil, []byte(tc.key), tc.level)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s at level %d is %s %v, want %s", tc.key, tc.level, got, err, tc.want)
		}
		// The group of a key and that of the group's key are the same.
		whole, part := row(t, tc.key, "a", "1"), row(t, tc.want, "a", "1")
		if !bytes.Equal(GroupSort(whole.Sort, tc.level), GroupSort(part.Sort, tc.level)) {
			t.Errorf("%s at level %d: group %x, that of its key %x", tc.key, tc.level, GroupSort(whole.Sort, tc.level), GroupSort(part.Sort, tc.level))
		}
	}
	if bytes.Equal(GroupSort(row(t, `[1,2]`, "a", "1").Sort, 2), GroupSort(row(t, `[1,3]`, "a", "1").Sort, 2)) {
		t.Error("two groups have the same sort key")
	}
}
