package syntax

import (
	"errors"
	"testing"

	"divan/storage/fault"
)

func FuzzParse(f *testing.F) {
	for _, e := range append(parsed(), refused()...) {
		f.Add(e.query)
	}
	for _, s := range []string{`((a b)@2^3 x<="y") fn:or(a)`, `a\u0041\uD83D\uDC4D*?`, `["a\" TO b} AND {* TO *]`, "(a^3)^2~1", `/a\/b/~ - x`, `\u=`, `\u>5`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []Dialect{Search, Nouveau} {
			q, err := Parse(text, d)
			if err != nil {
				var refusal *fault.Error
				if !errors.As(err, &refusal) || refusal.Kind != fault.BadRequest || refusal.Reason == "" {
					t.Fatalf("%d %q: %#v", d, text, err)
				}
				continue
			}
			printed := q.String()
			if len(printed) > maxBytes {
				continue
			}
			again, err := Parse(printed, d)
			if err != nil {
				t.Fatalf("%d %q: %q: %v", d, text, printed, err)
			}
			if again.String() != printed {
				t.Fatalf("%d %q: %q, then %q", d, text, printed, again)
			}
		}
	})
}
