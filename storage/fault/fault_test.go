package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestIs(t *testing.T) {
	for _, tc := range []struct {
		is   Kind
		want []Kind
	}{
		{NotFound, []Kind{NotFound}},
		{NoDatabase, []Kind{NoDatabase, NotFound}},
		{Deleted, []Kind{Deleted, NotFound}},
		{NoCopy, []Kind{NoCopy}},
		{Conflict, []Kind{Conflict}},
	} {
		err := fmt.Errorf("wrapped: %w", New(tc.is, "a reason"))
		var got []Kind
		for k := Internal; k <= Deleted; k++ {
			if Is(err, k) {
				got = append(got, k)
			}
		}
		if len(got) != len(tc.want) || !Is(err, tc.want[0]) || !Is(err, tc.want[len(tc.want)-1]) || KindOf(err) != tc.is {
			t.Errorf("%d is %v, want %v", tc.is, got, tc.want)
		}
	}
	if Is(nil, NotFound) || Is(errors.New("plain"), NotFound) || !Is(errors.New("plain"), Internal) {
		t.Error("an error without a kind is internal, and no error is none")
	}
}
