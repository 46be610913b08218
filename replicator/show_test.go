package replicator

import (
	"strings"
	"testing"

	"divan/replicator/endpoint"
	"divan/replicator/protocol"
)

// TestSequencesAreStrings: a position is shown as a string, of any type that the source has.
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

// TestPendingIsNull: the number of changes that are left is null as long as it is unknown, and a
// position from which another run would start is always there.
func TestPendingIsNull(t *testing.T) {
	for pending, want := range map[int64]string{-1: "null", 0: "0", 1006: "1006"} {
		got := string(appendInfo(nil, &protocol.Stats{ChangesPending: pending}, true))
		if !strings.Contains(got, `"changes_pending":`+want+`,`) || !strings.Contains(got, `"checkpointed_source_seq":"0"`) {
			t.Errorf("%d: %s", pending, got)
		}
	}
}
