package analysis

import (
	"strings"
	"testing"

	"divan/shard/search/syntax"
)

func BenchmarkAnalyze(b *testing.B) {
	english := strings.Repeat("The Quick brown fox, which had jumped over 3.14 lazy dogs (and a cat), was seen near example.com; it's nobody's fault. ", 100)
	german := strings.Repeat("Über den Wäldern hängen größere Wolken, und die müden Füchse schlafen schön. ", 100)
	russian := strings.Repeat("Над лесами висят большие облака, и усталые лисы спят спокойно. ", 100)
	for _, c := range []struct{ name, analyzer, text string }{
		{"standard", "standard", english},
		{"standard of German", "standard", german},
		{"standard of Russian", "standard", russian},
		{"whitespace", "whitespace", english},
		{"simple", "simple", english},
		{"classic", "classic", english},
		{"email", "email", english},
		{"english", "english", english},
		{"german", "german", german},
		{"russian", "russian", russian},
		{"cjk", "cjk", strings.Repeat("東京都の天気は晴れです。", 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, err := Named(c.analyzer, syntax.Search)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			var s Stream
			tokens := 0
			for b.Loop() {
				s.Reset(a, c.text)
				for _, ok := s.Next(); ok; _, ok = s.Next() {
					tokens++
				}
			}
			b.ReportMetric(float64(tokens)/float64(b.N), "tokens/op")
		})
	}
}
