package query

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAppendTextPath(t *testing.T) {
	for path, want := range map[string]string{
		"name.first": "name.first", `name\.first`: "name_2efirst", "favorites.[]": "favorites._5b_5d", "_id": "_5fid", "é": "_c3_a9", "a b.c-d": "a_20b.c_2dd",
	} {
		if got, err := AppendTextPath([]byte("x"), path); err != nil || string(got) != "x"+want {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for name, want := range map[string]string{"age_3anumber": "age:number", "a._5b_5d_3astring": "a.[]:string", "$default": "$default", "odd_": "odd_", "a_zz": "a_zz"} {
		if got := DecodeTextName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
	for _, path := range []string{"", ".a", "a.", "a..b"} {
		if got, err := AppendTextPath(nil, path); err == nil {
			t.Errorf("%q: %q", path, got)
		}
	}
}

// TestAppendTextKey: every key is told from every other, and no encoded key has a dot.
func TestAppendTextKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[_a-f0-9.\[\]:\x00-\xff]*`)).Draw(t, "key")
		encoded := string(AppendTextKey(nil, key))
		decoded := DecodeTextName(encoded)
		if decoded != key || strings.Contains(encoded, ".") {
			t.Fatalf("%q is encoded as %q, which is %q", key, encoded, decoded)
		}
	})
}
