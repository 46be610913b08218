package search

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/shard/search/searchtest"
)

// TestDistance: the distance in a band is that of the second engine.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("abü")), 0, 8, -1)
		d := distance{word: []rune(word.Draw(t, "word")), most: rapid.IntRange(1, 2).Draw(t, "most")}
		for range 3 { // one is used for many terms
			term := word.Draw(t, "term")
			want := searchtest.Edits(d.word, []rune(term))
			if got, ok := d.of([]byte(term)); ok != (want <= d.most) || ok && got != want {
				t.Fatalf("%q and %q: %d, %v in place of %d, %d at most", string(d.word), term, got, ok, want, d.most)
			}
		}
	})
}

// TestLongTerms: a query that looks at a few long terms ends with its context as well.
func TestLongTerms(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	c := &content{}
	for i := range 1500 {
		c.Text += fmt.Sprint(strings.Repeat("x", 200), i, " ")
	}
	n.put("d", c)
	n.expectTotal("t:x*", 1)
	req := n.request("t:xx*1")
	req.Limit = 0
	if _, err := n.evaluate(&brief{t.Context(), 1}, &req); !errors.Is(err, context.Canceled) {
		t.Errorf("when the context ends: %v", err)
	}
}
