package repair

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestRandomHistoriesConverge: for any writes, deletions, branches and purges on three copies that
// exchange little, and any pushes in between, in the end all hold the same, and nothing else is
// gone than what was purged.
func TestRandomHistoriesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history{t: t, written: map[string]map[doc.Rev]bool{}, purged: map[doc.Rev]bool{}}
		for i := range 3 {
			n := newNode(t, string(rune('a'+i))+"@x")
			defer n.stop()
			h.nodes = append(h.nodes, n)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.step()
		}
		// Purges travel one pair per push, so three rounds bring everything
		// everywhere.
		for range 3 {
			for _, a := range h.nodes {
				for _, b := range h.nodes {
					if a != b {
						h.push(a, b)
					}
				}
			}
		}
		agree(t, h.nodes...)
		h.check()
	})
}

// history is what has been done to some copies.
type history struct {
	t       *rapid.T
	nodes   []*node
	uuid    byte
	written map[string]map[doc.Rev]bool // every leaf that ever was, by document
	purged  map[doc.Rev]bool
}

func (h *history) node(label string) *node {
	return h.nodes[rapid.IntRange(0, len(h.nodes)-1).Draw(h.t, label)]
}

func (h *history) step() {
	t := h.t
	n := h.node("node")
	id := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "id")
	switch rapid.SampledFrom([]string{"edit", "edit", "edit", "delete", "branch", "attach", "purge", "push", "push", "compact"}).Draw(t, "step") {
	case "edit":
		h.wrote(id, n.put(id, h.live(n, id), fmt.Sprintf(`{"x":%d}`, rapid.IntRange(0, 99).Draw(t, "x"))))
	case "attach":
		size := rapid.SampledFrom([]int{10, 70_000}).Draw(t, "size")
		a := n.attach(id, "file", byte(rapid.IntRange(1, 200).Draw(t, "key")), content(size, byte(size)))
		h.wrote(id, n.put(id, h.live(n, id), `{}`, a))
	case "delete":
		if r := h.live(n, id); !r.IsZero() {
			h.wrote(id, n.remove(id, r))
		}
	case "branch":
		parent := h.live(n, id) // a revision has one parent, on any node that makes it
		h.wrote(id, n.branch(id, parent, fmt.Sprint("branch", rapid.IntRange(0, 9).Draw(t, "branch"), " of ", parent), `{"b":1}`))
	case "purge":
		leaves, err := n.OpenRevs(context.Background(), shard.OpenRevsRequest{Copy: n.copy, ID: id, All: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(leaves) > 0 {
			h.uuid++
			n.purge(h.uuid, id, leaves[0].Rev)
			h.purged[leaves[0].Rev] = true
		}
	case "push":
		if to := h.node("to"); to != n {
			h.push(n, to)
		}
	case "compact":
		if err := n.Compactions.Start(context.Background(), n.copy, shard.Limits{PurgedInfos: 1}, "db"); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *history) push(from, to *node) {
	h.t.Helper()
	p := from.pushTo(to, to.copies())
	p.batch = 3
	for {
		o, err := p.run(context.Background())
		if err != nil {
			h.t.Fatalf("push %s to %s: %v", from.name, to.name, err)
		}
		if !o.more {
			return
		}
		p = from.pushTo(to, to.copies())
	}
}

// live returns the winner of a document, zero when there is none that lives.
func (h *history) live(n *node, id string) doc.Rev {
	d, err := n.Open(context.Background(), shard.OpenRequest{Copy: n.copy, ID: id})
	if fault.Is(err, fault.NotFound) {
		return doc.Rev{}
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return d.Rev
}

func (h *history) wrote(id string, r doc.Rev) {
	if h.written[id] == nil {
		h.written[id] = map[doc.Rev]bool{}
	}
	h.written[id][r] = true
	delete(h.purged, r) // written again
}

// check fails when a revision that was not purged is unknown everywhere. With purges of descendants
// its ancestors go, so documents with purges are left out.
func (h *history) check() {
	n := h.nodes[0]
	for id, revs := range h.written {
		touched := false
		var ask []doc.Rev
		for r := range revs {
			touched = touched || h.purged[r]
			ask = append(ask, r)
		}
		if touched || h.uuid > 0 {
			continue
		}
		missing, err := n.Missing(context.Background(), n.copy, []shard.IDRevs{{ID: id, Revs: ask}})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(missing[0].Missing) > 0 {
			h.t.Fatalf("%s: %v are lost", id, missing[0].Missing)
		}
	}
	for _, n := range h.nodes {
		n.check()
	}
}
