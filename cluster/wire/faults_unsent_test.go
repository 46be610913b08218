package wire

import (
	"errors"
	"fmt"
	"testing"

	"divan/storage/fault"
)

// A call that never left is a fault like any other, and says what it is.
func TestUnsent(t *testing.T) {
	p := newPeer("b@b")
	p.lose(down("b@b", errors.New("cable")))
	_, err := p.reach(t.Context())
	var e interface{ NotSent() bool }
	if !errors.As(fmt.Errorf("wrapped: %w", err), &e) || !e.NotSent() || !fault.Is(err, fault.NodeDown) || fault.Reason(err) == "" {
		t.Errorf("%v", err)
	}
}
