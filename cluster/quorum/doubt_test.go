package quorum

import (
	"context"
	"fmt"
	"testing"

	"divan/storage/fault"
)

// unsent is an error that says that nothing was asked.
type unsent struct{ error }

func (unsent) NotSent() bool   { return true }
func (u unsent) Unwrap() error { return u.error }

func TestDoubtful(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{name: "an answer", err: errConflict},
		{name: "no copy can mend it", err: Final(fault.New(fault.Busy, "no memory"))},
		{name: "it does not take part", err: fault.New(fault.Unavailable, "maintenance")},
		{name: "it holds no such copy", err: fault.New(fault.NoCopy, "no_db_file")},
		{name: "it knows a newer map", err: fault.NewStaleMap(7)},
		{name: "it shuts down", err: fault.New(fault.Closed, "closing")},
		{name: "it was never asked", err: unsent{fault.New(fault.NodeDown, "no connection")}},
		{name: "the connection broke", err: fault.New(fault.NodeDown, "down"), want: true},
		{name: "the time was over", err: context.DeadlineExceeded, want: true},
		{name: "its disk failed", err: errDisk, want: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Doubtful(tc.err); got != tc.want {
				t.Fatalf("got %v", got)
			}
		})
	}
}

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
