package memory

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// bounded is a Holder that has so much.
type bounded struct{ held, limit int }

var errBounded = errors.New("full")

func (b *bounded) Hold(n int) error {
	if b.held+n > b.limit {
		return errBounded
	}
	b.held += n
	return nil
}

func (b *bounded) Drop(n int) { b.held -= n }

// TestSteps: what the holder has is what was counted, less than a step apart; a refused piece
// does not count, and nothing is left in the end.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bounded{limit: rapid.IntRange(0, 10*step).Draw(t, "limit")}
		s, bytes := InSteps(b), 0
		for range rapid.IntRange(1, 30).Draw(t, "pieces") {
			n := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 4*step)).Draw(t, "n")
			if rapid.Bool().Draw(t, "add") {
				if err := s.Add(n); err == nil {
					bytes += n
				} else if bytes+n <= b.limit {
					t.Fatalf("%d more than %d of %d bytes are refused", n, bytes, b.limit)
				}
			} else {
				s.Reduce(n)
				bytes = min(n, bytes)
			}
			if apart := bytes - b.held; apart < 0 || apart >= step || s.Taken() != b.held {
				t.Fatalf("%d bytes are counted as %d", bytes, b.held)
			}
		}
		if s.Reduce(0); b.held != 0 {
			t.Fatalf("%d bytes are left", b.held)
		}
	})
	var none Steps
	if err := none.Add(1 << 40); err != nil {
		t.Error(err)
	}
	none.Reduce(0)
}
