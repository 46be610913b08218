package replicator

import (
	"testing"

	"divan/replicator/endpoint"
)

// TestSequencesAreStrings: a position is told as a string, whatever the source has.
func TestSequencesAreStrings(t *testing.T) {
	for seq, want := range map[endpoint.Seq]string{
		"": `{"s":"0"`, "7": `{"s":"7"`, `"7-x"`: `{"s":"7-x"`, `[7,"x"]`: `{"s":[7,"x"]`,
	} {
		o := object{}
		o.seq("s", seq)
		if string(o.out) != want {
			t.Errorf("%q: %s, want %s", seq, o.out, want)
		}
	}
}
