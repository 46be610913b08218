package placer_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"divan/reshard/placer"
	"divan/shard/ring"
)

// script is a cluster with names, and the last plan for it.
type script struct {
	placer.Cluster

	databases, shards []string
	plan              *placer.Result
}

// TestScripts runs the dialogues in testdata.
//
//	cluster  begins one with what the input says; change adds to it, or says anew how a node is:
//	         node a [zone=x] [weight=2] [draining] [lost] [away]
//	         database pond x:1,y:1        with a placement rule; one without it need not be said
//	         shard pond 1/2 a:100 b:90/7  the first half of the ring: its copies, their bytes and load;
//	                                      -:100 is still to be made, a:100! is pinned
//	plan [tolerance=0.1] [leaving-only]  moves with their bytes, what is left, and bytes and load of nodes
//	apply    does what the plan says, and shows the shards
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "cluster", "change":
				if d.Cmd == "cluster" {
					*s = script{}
				}
				for line := range strings.SplitSeq(d.Input, "\n") {
					s.line(t, strings.Fields(line))
				}
				return ""
			case "plan":
				o := placer.Options{LeavingOnly: d.HasArg("leaving-only")}
				if arg, ok := d.Arg("tolerance"); ok {
					o.Tolerance = number(t, arg.SingleVal(t))
				}
				s.plan = placer.Plan(&s.Cluster, o)
				return s.planned()
			case "apply":
				s.Cluster = *apply(&s.Cluster, s.plan.Moves)
				return s.placed()
			}
			t.Fatalf("%s: no command is called %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// line takes one line of a cluster.
func (s *script) line(t *testing.T, words []string) {
	t.Helper()
	switch words[0] {
	case "node":
		n := placer.Node{Node: ring.Node{Name: words[1]}}
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "zone":
				n.Zone = value
			case "weight":
				n.Weight = int64(number(t, value))
			default:
				n.Draining, n.Lost, n.Away = n.Draining || key == "draining", n.Lost || key == "lost", n.Away || key == "away"
			}
		}
		if at := s.node(n.Name); at != placer.None {
			s.Nodes[at] = n
		} else {
			s.Nodes = append(s.Nodes, n)
		}
	case "database":
		rule, err := ring.ParsePlacement(words[2])
		if err != nil {
			t.Fatal(err)
		}
		s.Databases[s.database(words[1])].Placement = rule
	case "shard":
		var i, q int
		if _, err := fmt.Sscanf(words[2], "%d/%d", &i, &q); err != nil {
			t.Fatal(err)
		}
		sh := placer.Shard{Range: ring.Split(q)[i-1], Database: s.database(words[1])}
		for _, w := range words[3:] {
			sh.Copies = append(sh.Copies, s.copyOf(t, w))
		}
		s.Shards = append(s.Shards, sh)
		s.shards = append(s.shards, words[1]+" "+words[2])
	default:
		t.Fatalf("%q", words)
	}
}

// copyOf returns the copy that node:bytes/load stands for.
func (s *script) copyOf(t *testing.T, text string) placer.Copy {
	t.Helper()
	text, pinned := strings.CutSuffix(text, "!")
	text, load, _ := strings.Cut(text, "/")
	name, bytes, _ := strings.Cut(text, ":")
	c := placer.Copy{Node: s.node(name), Pinned: pinned, Bytes: int64(number(t, bytes))}
	if load != "" {
		c.Load = int64(number(t, load))
	}
	return c
}

func (s *script) node(name string) int32 {
	return int32(slices.IndexFunc(s.Nodes, func(n placer.Node) bool { return n.Name == name }))
}

func (s *script) name(n int32) string {
	if n == placer.None {
		return "-"
	}
	return s.Nodes[n].Name
}

func (s *script) database(name string) int32 {
	at := slices.Index(s.databases, name)
	if at < 0 {
		at = len(s.databases)
		s.databases, s.Databases = append(s.databases, name), append(s.Databases, placer.Database{})
	}
	return int32(at)
}

// planned shows the plan.
func (s *script) planned() string {
	var out strings.Builder
	for _, m := range s.plan.Moves {
		fmt.Fprintf(&out, "move %s %s -> %s %d (%v)\n", s.shards[m.Shard], s.name(m.From), s.name(m.To), m.Bytes, m.Reason)
	}
	for _, l := range s.plan.Left {
		what := "node " + s.name(l.Node)
		if l.Shard != placer.None {
			what = s.shards[l.Shard] + " on " + s.name(l.Node)
		}
		fmt.Fprintf(&out, "left %s %d (%v): %v\n", what, l.Bytes, l.Reason, l.Why)
	}
	if len(s.plan.Moves) > 0 {
		fmt.Fprintf(&out, "moves %d bytes; with the nodes balanced at least %d\n", s.plan.Totals.Bytes, s.plan.Totals.MustMove)
	}
	before, after := s.loads(&s.Cluster), s.loads(apply(&s.Cluster, s.plan.Moves))
	for i, n := range s.plan.Nodes {
		fmt.Fprintf(&out, "%s: %d -> %d of %d", s.Nodes[i].Name, n.Before, n.After, n.Goal)
		if before[i]+after[i] > 0 {
			fmt.Fprintf(&out, ", load %d -> %d", before[i], after[i])
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func (s *script) loads(c *placer.Cluster) []int64 {
	out := make([]int64, len(c.Nodes))
	for _, sh := range c.Shards {
		for _, x := range sh.Copies {
			if x.Node != placer.None {
				out[x.Node] += x.Load
			}
		}
	}
	return out
}

// placed shows where copies are.
func (s *script) placed() string {
	var out strings.Builder
	for i, sh := range s.Shards {
		out.WriteString(s.shards[i])
		for _, x := range sh.Copies {
			out.WriteString(" " + s.name(x.Node))
		}
		out.WriteByte('\n')
	}
	return out.String()
}
