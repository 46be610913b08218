package syntax

import (
	"math"
	"testing"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		text, locale string
		want         float64
	}{
		{"10.0", "", 10},
		{"10.0", "us", 10},
		{"10.0", "de", 100},
		{"200.0", "de-AT", 2000},
		{"1.000,5", "de_DE", 1000.5},
		{"1,000", "", 1000},
		{"1,00,0.5,5", "en", 1000.5},
		{"1\u00a0000,5", "fr", 1000.5},
		{"-6", "", -6},
		{"-.5", "", -0.5},
		{"5.", "", 5},
		{"1E3", "", 1000},
		{"1E-3x", "", 0.001},
		{"1E", "", 1},
		{"1e3", "", 1},
		{"1,a", "", 1},
		{"12abc", "", 12},
		{"1E999", "", math.Inf(1)},
	} {
		if got, err := Decimal(c.text, c.locale); err != nil || got != c.want {
			t.Errorf("%q %s: %v %v, want %v", c.text, c.locale, got, err, c.want)
		}
	}
	for _, text := range []string{"abc", "", "-", ".", "+5", "Infinity", ",5", "--1"} {
		if v, err := Decimal(text, ""); err == nil || err.Error() != `Could not parse text "`+text+`" using java.text.DecimalFormat` {
			t.Errorf("%q: %v %v", text, v, err)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"1,000.5E-3", "-.5", "1\u00a0000,5", "E", "9.9.9"} {
		f.Add(s, "de")
	}
	f.Fuzz(func(t *testing.T, text, locale string) {
		v, err := Decimal(text, locale)
		if math.IsNaN(v) {
			t.Fatalf("%q %q: NaN", text, locale)
		}
		if again, _ := Decimal(text, locale+"-XX"); err == nil && again != v {
			t.Fatalf("%q %q: %v, with a country %v", text, locale, v, again)
		}
	})
}
