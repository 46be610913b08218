package bench

import "slices"

// Ratio sums up what the first server had for each of the second, in the rounds of a comparison.
type Ratio struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Rounds int     `json:"rounds"` // in which both had something
}

// ratioOf compares figures of the same rounds. A round in which one of the two has none, as when a processor
// time is less than the kernel's step, is left out. The result is zero when no round is left.
func ratioOf(first, second []float64) Ratio {
	var ratios []float64
	for i := range min(len(first), len(second)) {
		if first[i] > 0 && second[i] > 0 {
			ratios = append(ratios, first[i]/second[i])
		}
	}
	if len(ratios) == 0 {
		return Ratio{}
	}
	return Ratio{Median: median(ratios), Least: slices.Min(ratios), Most: slices.Max(ratios), Rounds: len(ratios)}
}

// median of an even number of figures is the middle between the two in the middle, of none it is 0.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
