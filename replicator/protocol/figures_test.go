package protocol

import "testing"

// A run that finds no database has failed to start; one that copies takes checkpoints.
func TestFigures(t *testing.T) {
	a, b := newStore("a"), newStore("b")
	a.edit("frog", "{}")
	f := &Figures{}
	o := options(a, b, request())
	o.Figures = f
	if _, err := Run(t.Context(), o); err != nil || f.Checkpoints.Load() != 1 || f.FailedStarts.Load() != 0 || f.FailedCheckpoints.Load() != 0 {
		t.Errorf("%v, %d checkpoints, %d failed starts", err, f.Checkpoints.Load(), f.FailedStarts.Load())
	}
	o.Source = unreachable{}
	if _, err := Run(t.Context(), o); err == nil || f.FailedStarts.Load() != 1 || f.Checkpoints.Load() != 1 {
		t.Errorf("%v, %d failed starts", err, f.FailedStarts.Load())
	}
}
