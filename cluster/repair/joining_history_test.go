package repair

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"divan/cluster/quorum"
	"divan/shard/ring"
	"divan/storage/doc"
)

// TestAcknowledgedStaysReadable: copies are lost one after the other, nodes are away or start
// again, and writes arrive at any of them. Every majority of the full copies has one that has each
// acknowledged write, and in the end all copies are full and have all.
func TestAcknowledgedStaysReadable(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			inWorld(t, 2+rnd.IntN(4), nil, func(w *world) {
				h := losses{world: w, rnd: rnd}
				for range 40 {
					h.step()
					h.check()
				}
				for _, m := range w.nodes {
					m.setDown(false)
				}
				w.wait(10 * time.Minute)
				for _, m := range w.nodes {
					m.wantFull(true, "nothing is in its way")
					m.check()
				}
				h.check()
				w.agree()
			})
		})
	}
}

// losses is what happens to a range while it is written to.
type losses struct {
	*world
	rnd    *rand.Rand
	writes int
	acked  []string // documents
}

func (h *losses) step() {
	m := h.nodes[h.names[h.rnd.IntN(len(h.names))]]
	switch h.rnd.IntN(10) {
	case 0, 1, 2:
		h.write()
	case 3, 4:
		// What the last majority has is lost with a second copy.
		if db, _ := h.group.Database("db"); m.joins() || len(db.Shards[0].Full()) == len(h.names) {
			m.lose()
		}
	case 5:
		m.restart()
	case 6:
		m.setDown(true)
	case 7:
		m.setDown(false)
	default:
		h.wait([]time.Duration{time.Second, 7 * time.Second, 5 * time.Minute}[h.rnd.IntN(3)])
	}
}

// write does what a coordinator does that reaches only some of the nodes.
func (h *losses) write() {
	h.writes++
	id := fmt.Sprintf("w%d", h.writes)
	db, _ := h.group.Database("db")
	s := &db.Shards[0]
	count := quorum.NewWrite(len(s.Full()), len(s.Copies)-len(s.Full()), 0)
	for _, c := range s.Copies {
		m := h.nodes[c.Node]
		joining := c.State == ring.StateJoining
		if m.down.Load() || h.rnd.IntN(4) == 0 {
			count.Follow(0, joining, errSick)
			continue
		}
		count.Follow(0, joining, nil)
		m.branch(id, doc.Rev{}, "r", `{}`)
	}
	if o, _ := count.Outcome(); o == quorum.Committed {
		h.acked = append(h.acked, id)
	}
}

func (h *losses) check() {
	h.t.Helper()
	db, _ := h.group.Database("db")
	full := db.Shards[0].Full()
	for _, id := range h.acked {
		have := 0
		for _, c := range full {
			if h.nodes[c.Node].has(id) {
				have++
			}
		}
		if have+quorum.Majority(len(full)) <= len(full) {
			h.t.Fatalf("%s was acknowledged, and %d of %d full copies have it", id, have, len(full))
		}
	}
}
