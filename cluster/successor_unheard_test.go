package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"divan/storage/fault"
)

// TestSuccessorUnheard: a node has heard that a database was deleted, and not yet that it
// was made again. A range that has ended with the former is asked about with the latter.
func TestSuccessorUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		leader, _, late := c.roles()
		for name, again := range map[string]bool{"pond": true, "lake": false} {
			if err := leader.CreateDB(t.Context(), name, CreateOptions{N: 1, Q: 1}); err != nil {
				t.Fatal(err)
			}
			d, err := late.DB(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if err := leader.DeleteDB(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			c.settle(func() bool { return late.keeper.gone(d.meta) })
			c.part(leader.name, late.name)
			if again {
				if err := leader.CreateDB(t.Context(), name, CreateOptions{N: 1, Q: 1}); err != nil {
					t.Fatal(err)
				}
			}
			ended := d.Asking().Ended(errDropped())
			if !fault.Is(ended, fault.NoDatabase) || errors.Is(ended, ErrSuccessor) {
				t.Fatalf("the range ended with %v", ended)
			}
			go func() {
				<-time.After(200 * time.Millisecond)
				c.part()
			}()
			if err := d.explain(t.Context(), ended); !fault.Is(err, fault.NoDatabase) || errors.Is(err, ErrSuccessor) != again {
				t.Errorf("made again %v: %v", again, err)
			}
		}
	})
}
