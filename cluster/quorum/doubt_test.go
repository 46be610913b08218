package quorum

import (
	"fmt"
	"testing"

	"divan/storage/fault"
)

func TestFinal(t *testing.T) {
	busy := fault.New(fault.Busy, "no memory")
	for _, err := range []error{Final(busy), fmt.Errorf("open: %w", Final(busy))} {
		if Usable(busy) || !Usable(err) || !fault.Is(err, fault.Busy) || fault.Reason(err) != "no memory" {
			t.Errorf("%v is usable: %t", err, Usable(err))
		}
	}
}

func TestTelling(t *testing.T) {
	order := []error{nil, errDown, errDisk, errConflict}
	for i, a := range order {
		for k, b := range order {
			want := a
			if k > i {
				want = b
			}
			if got := Telling(a, b); got != want { //nolint:errorlint // the very one
				t.Errorf("%v and %v: %v", a, b, got)
			}
		}
	}
}
