package clusterctl

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// plannedMoves is how many moves of a plan are shown.
	plannedMoves = 10
	// plannedLimit is how much of each list of a plan is asked for. What is left is summed up by its reason.
	plannedLimit = 1000
)

// print shows a plan.
func (p *plan) print(c *command) error {
	if err := p.printNodes(c); err != nil {
		return err
	}
	if err := printLeft(c, p.Left); err != nil {
		return err
	}
	if p.TotalMoves == 0 {
		return c.printf("\nThere is nothing to move.\n")
	}
	if err := c.printf("\n%s to move, %s (to balance the nodes takes at least %s):\n", copies(p.TotalMoves), size(p.Bytes), size(p.MustMove)); err != nil {
		return err
	}
	shown := p.Moves[:min(plannedMoves, len(p.Moves))]
	moves := newTable("  DATABASE", "RANGE", "FROM", "TO", ">SIZE", "REASON")
	for _, m := range shown {
		moves.add("  "+m.Database, m.Range, m.From, m.To, size(m.Bytes), m.Reason)
	}
	if err := moves.print(c.cfg.Out); err != nil {
		return err
	}
	return c.printf("%s", indented(more(p.TotalMoves, len(shown))))
}

func (p *plan) printNodes(c *command) error {
	heads := []string{"NODE", "ZONE", ">NOW", ">AFTER", ">GOAL"}
	noted := slices.ContainsFunc(p.Nodes, func(n nodeBytes) bool { return p.note(&n) != "" })
	if noted {
		heads = append(heads, "NOTE")
	}
	t := newTable(heads...)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		cells := []string{n.Node, n.Zone, size(n.Before), size(n.After), size(n.Goal)}
		if noted {
			cells = append(cells, p.note(n))
		}
		t.add(cells...)
	}
	return t.print(c.cfg.Out)
}

// note says what is special about a node.
func (p *plan) note(n *nodeBytes) string {
	switch {
	case n.Removed:
		return "removed"
	case slices.Contains(p.Away, n.Node):
		return "away: nothing moves from or to it"
	case n.Draining:
		return "draining"
	}
	return ""
}

// printLeft shows what stays as it should not be, a line for each reason.
func printLeft(c *command, all []left) error {
	type reason struct {
		reason, why string
		node        bool // it is about nodes, not about copies
	}
	type total struct {
		n       int
		bytes   int64
		example string
	}
	var order []reason
	sums := map[reason]*total{}
	for _, l := range all {
		key := reason{l.Reason, l.Why, l.Database == ""}
		if sums[key] == nil {
			sums[key] = &total{example: strings.TrimSpace(l.Database + " " + l.Range + " " + l.Node)}
			order = append(order, key)
		}
		sums[key].n++
		sums[key].bytes += l.Bytes
	}
	atLeast := ""
	if len(all) >= plannedLimit {
		atLeast = "at least "
	}
	for i, key := range order {
		if i == 0 {
			if err := c.printf("\nLeft as they are:\n"); err != nil {
				return err
			}
		}
		s := sums[key]
		example := s.example
		if s.n > 1 {
			example = "such as " + example
		}
		what := copies(s.n)
		if key.node {
			what = count(s.n, "node", "nodes")
		}
		if err := c.printf("  %s%s (%s), %s, %s: %s\n", atLeast, what, example, size(s.bytes), key.reason, key.why); err != nil {
			return err
		}
	}
	return nil
}

// question asks whether copies may move.
func question(first string, moves int, bytes int64) string {
	return fmt.Sprintf("%sove %s, %s?", first, copies(moves), size(bytes))
}
