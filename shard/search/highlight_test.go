package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
)

// TestHighlight: words of a query are wrapped in any field, phrases where they match, and
// words that hits must not have are not wrapped.
func TestHighlight(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.indexes.open = storedTexts
	n.create()
	n.put("a", &content{Text: "The quick brown fox. Quick as the brown dog."})
	for q, want := range map[string]string{
		"t:quick":                  "[The <b>quick</b> brown fox. <b>Quick</b> as the brown dog.]",
		"t:fox none:dog":           "[The quick brown <b>fox</b>. Quick as the brown <b>dog</b>.]",
		`t:"quick brown"`:          "[The <b>quick</b> <b>brown</b> fox. Quick as the brown dog.]",
		`t:"as the brown"`:         "[The quick brown fox. Quick <b>as</b> the <b>brown</b> dog.]",
		"t:qu* -t:cat":             "[The <b>quick</b> brown fox. <b>Quick</b> as the brown dog.]",
		"t:fo? t:dgo~ t:/br.*/":    "[The quick <b>brown</b> <b>fox</b>. Quick as the <b>brown</b> <b>dog</b>.]",
		"+t:dog +t:[brown TO dog}": "[The quick <b>brown</b> fox. Quick as the <b>brown</b> <b>dog</b>.]",
		"*:*":                      "[]",
	} {
		req := n.request(q)
		req.Highlight = &Highlight{Fields: []string{"t", "none"}, Before: "<b>", After: "</b>", Number: 1, Size: 100}
		a, err := n.indexes.Query(t.Context(), req)
		must(t, err)
		if got := fmt.Sprint(a.Hits[0].Highlights[0].Pieces); got != want || len(a.Hits[0].Highlights[1].Pieces) > 0 {
			t.Errorf("%s: %s in place of %s", q, a.Hits[0].Highlights, want)
		}
	}
	req := n.request("t:quick")
	req.Highlight = &Highlight{Fields: []string{"t"}, Number: 2, Size: 10}
	req.IncludeFields = []string{"none"}
	a, err := n.indexes.Query(t.Context(), req)
	must(t, err)
	if len(a.Hits[0].Highlights[0].Pieces) > 0 {
		t.Errorf("of a field that is left out: %v", a.Hits[0].Highlights)
	}
}

// TestHighlightMemory: pieces are refused before they take more than a query may, and a query
// ends with its context, however often it names a field.
func TestHighlightMemory(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.indexes.open = storedTexts
	n.create()
	n.put("a", &content{Text: strings.Repeat("word ", 10_000)})
	n.expectTotal("t:word", 1)
	req := n.request("t:word")
	req.Highlight = &Highlight{Fields: []string{"t"}, Before: strings.Repeat("<", 10_000), Number: 1, Size: 100}
	if a, err := n.indexes.Query(t.Context(), req); !fault.Is(err, fault.BadRequest) {
		t.Errorf("100 MB of pieces: %v, %v", a, err)
	}
	req.Highlight = &Highlight{Fields: slices.Repeat([]string{"t"}, 20), Number: 1, Size: 100}
	if _, err := n.evaluate(&brief{t.Context(), 12}, &req); !errors.Is(err, context.Canceled) {
		t.Errorf("when the context ends: %v", err)
	}
}
