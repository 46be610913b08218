package clusterctl

import (
	"fmt"
	"strings"
)

// printStatus prints it for people.
func (c *command) printStatus(s *status) error {
	nodes := newTable("NODE", "STATE", "ZONE", "VERSION", ">COPIES", ">DATA")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		state, has, bytes := n.State, "", ""
		if n.Draining {
			state += nodeDraining
		}
		if n.Copies != nil {
			has = fmt.Sprint(*n.Copies)
		}
		if n.Bytes != nil {
			bytes = size(*n.Bytes)
		}
		nodes.add(n.Node, state, n.Zone, n.Version, has, bytes)
	}
	if err := nodes.print(c.cfg.Out); err != nil {
		return err
	}
	leader := s.Metadata.Leader + " leads"
	if s.Metadata.Leader == "" {
		leader = "no leader"
	}
	if err := c.printf("\nMetadata   %s, %s\n", leader, count(len(s.Metadata.Voters), "node votes", "nodes vote")); err != nil {
		return err
	}
	if s.Rebalance != nil {
		if err := c.printf("Rebalance  %s\n", s.Rebalance.summary()); err != nil {
			return err
		}
	}
	if err := c.printJobs(s); err != nil {
		return err
	}
	return c.printShards(s)
}

func (c *command) printJobs(s *status) error {
	var parts []string
	all := 0
	for _, state := range []string{stateRunning, "new", jobStopped, jobFailed, jobCompleted} {
		if n := s.Jobs.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
			if state != jobCompleted {
				all += n
			}
		}
	}
	if err := c.printf("Jobs       %s\n", orNone(strings.Join(parts, ", "))); err != nil || all == 0 {
		return err
	}
	t := newTable("  TYPE", "SHARD", "NODE", "TO", "STATE", "STEP", "REASON")
	for _, j := range s.Jobs.List {
		t.add("  "+j.Type, j.Source, j.Node, j.To, j.State, j.Step, oneLine(j.Info.Reason))
	}
	if err := t.print(c.cfg.Out); err != nil {
		return err
	}
	return c.printf("%s", indented(more(all, len(s.Jobs.List))))
}

func (c *command) printShards(s *status) error {
	var parts []string
	if n := s.Shards.Lost; n > 0 {
		parts = append(parts, fmt.Sprintf("%d lost", n))
	}
	if n := s.Shards.Joining; n > 0 {
		parts = append(parts, fmt.Sprintf("%d joining", n))
	}
	if len(parts) == 0 {
		return c.printf("Shards     none lost, none joining\n")
	}
	if err := c.printf("Shards     %s\n", strings.Join(parts, ", ")); err != nil {
		return err
	}
	t := newTable("  STATE", "NODE", "SHARD")
	for _, shard := range s.Shards.List {
		t.add("  "+shard.State, shard.Node, shard.Shard)
	}
	if err := t.print(c.cfg.Out); err != nil {
		return err
	}
	return c.printf("%s", indented(more(s.Shards.Lost+s.Shards.Joining, len(s.Shards.List))))
}

func indented(line string) string {
	if line == "" {
		return ""
	}
	return "  " + line
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// summary is one line.
func (r *rebalanceState) summary() string {
	if r.State == "none" {
		return "none"
	}
	out := r.State
	if r.Reason != "" {
		out += " (" + oneLine(r.Reason) + ")"
	}
	out += ": " + r.progress()
	var stays int
	for _, l := range r.Left {
		stays += l.Copies
	}
	if stays > 0 {
		out += fmt.Sprintf("; %d left as they are", stays)
	}
	return out
}

// progress says how far it is.
func (r *rebalanceState) progress() string {
	out := fmt.Sprintf("%d of %s moved, %s of %s", r.Moved.Copies, copies(r.Planned.Copies), size(r.Moved.Bytes), size(r.Planned.Bytes))
	if r.Failed.Copies > 0 {
		out += fmt.Sprintf(", %d failed", r.Failed.Copies)
	}
	if len(r.Running) > 0 {
		steps := make([]string, len(r.Running))
		for i := range r.Running {
			if steps[i] = r.Running[i].Step; steps[i] == jobCompleted {
				steps[i] = "done, not counted yet"
			}
		}
		out += fmt.Sprintf("; %d under way: %s", len(r.Running), tally(steps))
	}
	return out
}

// tally counts steps: "2 initial_copy, 1 topoff1".
func tally(steps []string) string {
	counts := map[string]int{}
	var order []string
	for _, step := range steps {
		if step == "" {
			step = "waiting"
		}
		if counts[step]++; counts[step] == 1 {
			order = append(order, step)
		}
	}
	for i, step := range order {
		order[i] = fmt.Sprintf("%d %s", counts[step], step)
	}
	return strings.Join(order, ", ")
}
