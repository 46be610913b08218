package compression

import "testing"

// TestNamed: the words of CouchDB mean something, and no word means no compression by mistake.
func TestNamed(t *testing.T) {
	for word, want := range map[string]Method{
		"": Fast, "snappy": Fast, "none": None, "zstd": Small, "deflate_1": Small, "deflate_9": Small,
	} {
		if got := Named(word); got != want {
			t.Errorf("%q: %d, want %d", word, got, want)
		}
	}
	profiles := map[string]bool{}
	for _, m := range []Method{Fast, Small, None} {
		profiles[m.Profile().Name] = true
	}
	if len(profiles) != 3 {
		t.Errorf("%v", profiles)
	}
}
