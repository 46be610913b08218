package analysis

import (
	"os"
	"strings"
	"testing"

	"divan/shard/search/syntax"
)

// TestWords: stop words and stems of all languages stay as they were when bleve made
// them, because indexes on disk hold them.
func TestWords(t *testing.T) {
	text, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			continue // the heading
		}
		n++
		if got := terms(t, syntax.Search, fields[0], fields[1]); got != fields[2] {
			t.Errorf("%s %q: %q, want %q", fields[0], fields[1], got, fields[2])
		}
	}
	if n < 2000 {
		t.Errorf("only %d words", n)
	}
}
