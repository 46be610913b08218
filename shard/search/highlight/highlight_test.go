package highlight

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// tokensOf are the words between spaces.
func tokensOf(text string) (out []Token) {
	at := 0
	for i, w := range strings.Split(text, " ") {
		if w != "" {
			out = append(out, Token{w, i, at, at + len(w)})
		}
		at += len(w) + 1
	}
	return out
}

func terms(list ...string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, t := range list {
		out[t] = struct{}{}
	}
	return out
}

func TestPieces(t *testing.T) {
	phrase := func(slop int, words ...string) Query {
		p := Phrase{Slop: slop}
		for i, w := range words {
			p.Words = append(p.Words, Word{w, i})
		}
		return Query{Phrases: []Phrase{p}}
	}
	for _, c := range []struct {
		query        Query
		text         string
		size, number int
		want         string
	}{
		{Query{Terms: terms("quick")}, "the quick fox is quick", 100, 1, "[the <quick> fox is <quick>]"},
		{Query{Terms: terms("slow")}, "the quick fox", 100, 1, "[]"},
		{Query{Terms: terms("a", "b")}, "a x x x a x x x b a x x", 8, 1, "[ <b> <a> x x]"},
		{Query{Terms: terms("a", "b")}, "a x x x a x x x b a x x", 8, 5, "[ <b> <a> x x <a> x x x  <a> x x x]"},
		{phrase(0, "a", "b"), "b a a b a x b", 100, 1, "[b a <a> <b> a x b]"},
		{phrase(1, "a", "b"), "a x b x x b", 100, 1, "[<a> x <b> x x b]"},
		{phrase(0, "a", "a"), "a x a a a", 100, 1, "[a x <a> <a> <a>]"},
		{phrase(2, "b", "a"), "a b", 100, 1, "[<a> <b>]"},
		{Query{Accept: []func([]byte) (bool, error){func(t []byte) (bool, error) { return t[0] == 'b', nil }}}, "a bc", 100, 1, "[a <bc>]"},
		{Query{Terms: terms("x")}, "", 10, 1, "[]"},
	} {
		pieces, err := c.query.Pieces(t.Context(), c.text, tokensOf(c.text), Style{"<", ">", c.size, 1000})
		if got := fmt.Sprint(Best(pieces, c.number)); err != nil || got != c.want {
			t.Errorf("%q in %d: %s in place of %s, %v", c.text, c.size, got, c.want, err)
		}
	}
}

// TestParts: each piece is a part of the text, in order, with all words of the query wrapped
// and no others; without a limit of size it is the text.
func TestParts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "bb", "üü", "", "longword"}), 0, 30).Draw(r, "words")
		text := strings.Join(words, " ")
		q := Query{Terms: terms(rapid.SliceOf(rapid.SampledFrom([]string{"a", "bb", "üü"})).Draw(r, "terms")...)}
		size := rapid.SampledFrom([]int{1, 3, 10, 10_000}).Draw(r, "size")
		pieces, err := q.Pieces(context.Background(), text, tokensOf(text), Style{"<", ">", size, 1000})
		if err != nil {
			r.Fatal(err)
		}
		rest, wrapped, wanted := text, 0, 0
		for _, w := range words {
			if _, ok := q.Terms[w]; ok {
				wanted++
			}
		}
		for _, p := range pieces {
			plain := strings.NewReplacer("<", "", ">", "").Replace(p.Text)
			at := strings.Index(rest, plain)
			if at < 0 {
				r.Fatalf("%q is not in %q", p.Text, rest)
			}
			rest = rest[at+len(plain):]
			for _, w := range strings.Fields(p.Text) {
				_, want := q.Terms[strings.Trim(w, "<>")]
				if marked := strings.HasPrefix(w, "<") && strings.HasSuffix(w, ">"); marked != want {
					r.Fatalf("%q in %q for %v", w, p.Text, q.Terms)
				} else if marked {
					wrapped++
				}
			}
			if utf8.RuneCountInString(plain) > size+len("longword ") && size < 10_000 && !slices.Contains(words, "") {
				r.Fatalf("%q is longer than %d", plain, size)
			}
			if size == 10_000 && plain != text {
				r.Fatalf("%q of %q", plain, text)
			}
		}
		if wrapped != wanted {
			r.Fatalf("%d of %d words in %v", wrapped, wanted, pieces)
		}
	})
}

// TestTooLarge: what words are wrapped in counts before it is written.
func TestTooLarge(t *testing.T) {
	q := Query{Terms: terms("a")}
	text := strings.Repeat("a ", 100)
	for most, want := range map[int]error{99_000: ErrTooLarge, 101_000: nil} {
		pieces, err := q.Pieces(t.Context(), text, tokensOf(text), Style{Before: strings.Repeat("<", 1000), Size: 10, Most: most})
		if !errors.Is(err, want) || (err == nil) != (len(pieces) > 0) {
			t.Errorf("100 words in 1,000 bytes each, %d at most: %d pieces, %v", most, len(pieces), err)
		}
	}
}

// TestLongPhrase: a phrase that has a word often takes no memory for each of its words at each
// token, and ends with its context.
func TestLongPhrase(t *testing.T) {
	text := strings.Repeat("a ", 20_000)
	p := Phrase{Slop: 1}
	for i := range 500 {
		p.Words = append(p.Words, Word{"a", i})
	}
	q := Query{Phrases: []Phrase{p}}
	tokens, style := tokensOf(text), Style{Size: len(text), Most: len(text)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pieces, err := q.Pieces(t.Context(), text, tokens, style)
	runtime.ReadMemStats(&after)
	if err != nil || len(pieces) != 1 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("500 words in 20,000 take %d MB", took>>20)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Pieces(ctx, text, tokens, style); !errors.Is(err, context.Canceled) {
		t.Errorf("when the context has ended: %v", err)
	}
}
