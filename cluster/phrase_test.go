package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"divan/storage/fault"
)

// TestPhraseTwice phrases what an operation inside of another one has phrased: a
// node that could not be dialed in time stays one that is away.
func TestPhraseTwice(t *testing.T) {
	d := start(t, setup{}).create("db", CreateOptions{})
	dial := fmt.Errorf("dial: %w", errors.Join(errors.New("i/o timeout"), context.DeadlineExceeded))
	for _, tc := range []struct {
		err  error
		want fault.Kind
	}{
		{fault.Wrap(fault.NodeDown, "Node b@b cannot be reached.", dial), fault.Unavailable},
		{dial, fault.Timeout},
		{fault.New(fault.Conflict, "conflict"), fault.Conflict},
	} {
		once := d.phrase(tc.err)
		if twice := d.phrase(once); fault.KindOf(once) != tc.want || fault.KindOf(twice) != tc.want {
			t.Errorf("%v: %v, then %v", tc.err, once, twice)
		}
	}
	if err := d.phrase(d.phrase(nil)); err != nil {
		t.Error(err)
	}
}
