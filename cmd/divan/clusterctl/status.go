package clusterctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// nodeTimeout bounds each question to a node, which may hang.
const nodeTimeout = 10 * time.Second

// listed is how many rows of each kind the status shows.
const listed = 20

// States of a node.
const (
	nodeHere     = "here"
	nodeAway     = "away"
	nodeSilent   = "silent"  // it is here, and does not answer
	nodeRemoved  = "removed" // it is no member any more, and has copies still
	nodeDraining = ", draining"
)

// nodeStatus is how a node is.
type nodeStatus struct {
	Node     string `json:"node"`
	State    string `json:"state"`
	Draining bool   `json:"draining"`
	Zone     string `json:"zone,omitempty"`
	Version  string `json:"version,omitempty"`
	Copies   *int   `json:"copies,omitempty"` // nil: not known, as Bytes
	Bytes    *int64 `json:"bytes,omitempty"`
	Lost     int    `json:"lost"`
	Joining  int    `json:"joining"`
	Error    string `json:"error,omitempty"` // why it is silent
}

// shardStatus is a copy that is not as it should be.
type shardStatus struct {
	Node  string `json:"node"`
	Shard string `json:"shard"`
	State string `json:"state"` // lost, joining
}

// status is how a cluster is. Lists hold the first of what is counted.
type status struct {
	OK       bool         `json:"ok"`
	Problems []string     `json:"problems"`
	Nodes    []nodeStatus `json:"nodes"`
	Metadata struct {
		Leader string   `json:"leader"`
		Voters []string `json:"voters"`
	} `json:"metadata"`
	Rebalance *rebalanceState `json:"rebalance,omitempty"` // nil: a single node
	Jobs      struct {
		Counts map[string]int `json:"counts"` // by state
		List   []job          `json:"list"`   // that have not completed
	} `json:"jobs"`
	Shards struct {
		Lost    int           `json:"lost"`
		Joining int           `json:"joining"`
		List    []shardStatus `json:"list"`
	} `json:"shards"`
}

// Status shows how the cluster is, as text or as JSON. The error says what is not well, if anything.
func Status(ctx context.Context, cfg Config, asJSON bool) error {
	return run(ctx, cfg, func(ctx context.Context, c *command) error {
		s, err := c.status(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			text, err := json.Marshal(s)
			if err != nil {
				return err
			}
			if err := c.printf("%s\n", text); err != nil {
				return err
			}
		} else if err := c.printStatus(s); err != nil {
			return err
		}
		if !s.OK {
			return errors.New(strings.Join(s.Problems, "; "))
		}
		return nil
	})
}

func (c *command) status(ctx context.Context) (*status, error) {
	s := &status{Problems: []string{}}
	s.Shards.List, s.Jobs.List, s.Jobs.Counts = []shardStatus{}, []job{}, map[string]int{}
	if err := c.statusOfNodes(ctx, s); err != nil {
		return nil, err
	}
	var system struct {
		Metadata any `json:"metadata"`
	}
	system.Metadata = &s.Metadata
	if err := c.client.Get(ctx, "/_node/_local/_system", &system); err != nil {
		return nil, err
	}
	if s.Metadata.Leader == "" {
		s.problem("no node leads the others, so databases and settings cannot be changed")
	}
	if err := c.statusOfMoves(ctx, s); err != nil {
		return nil, err
	}
	s.OK = len(s.Problems) == 0
	return s, nil
}

func (s *status) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

// statusOfNodes finds out about each node.
func (c *command) statusOfNodes(ctx context.Context, s *status) error {
	var members struct {
		Here []string `json:"all_nodes"`
		All  []string `json:"cluster_nodes"`
	}
	if err := c.client.Get(ctx, "/_membership", &members); err != nil {
		return err
	}
	var docs struct {
		Rows []struct {
			ID  string
			Doc struct{ Zone string }
		}
	}
	if err := c.client.Get(ctx, "/_node/_local/_nodes/_all_docs?include_docs=true", &docs); err != nil {
		return err
	}
	zones := map[string]string{}
	for _, row := range docs.Rows {
		zones[row.ID] = row.Doc.Zone
	}
	for _, name := range members.All {
		n := nodeStatus{Node: name, State: nodeHere, Zone: zones[name]}
		var failed error
		if slices.Contains(members.Here, name) {
			failed = c.askNode(ctx, s, &n)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !slices.Contains(members.Here, name) || refusedAs(failed, http.StatusPreconditionFailed): // nodedown
			n.State = nodeAway
			s.problem("%s is away", name)
		case failed != nil:
			n.State, n.Error = nodeSilent, oneLine(failed.Error())
			s.problem("%s does not answer (%s)", name, n.Error)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return c.placesOfCopies(ctx, s)
}

// askNode asks a node about itself.
func (c *command) askNode(ctx context.Context, s *status, n *nodeStatus) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	var versions struct{ Divan struct{ Version string } }
	if err := c.client.Get(ctx, atNode(n.Node, "_versions"), &versions); err != nil {
		return err
	}
	n.Version = versions.Divan.Version
	var shards struct{ Lost, Joining []string }
	if err := c.client.Get(ctx, atNode(n.Node, "_lost_shards"), &shards); err != nil {
		return err
	}
	if n.Lost = len(shards.Lost); n.Lost > 0 {
		s.problem("%s on %s lost", count(n.Lost, "shard is", "shards are"), n.Node)
	}
	n.Joining = len(shards.Joining)
	s.Shards.Lost += n.Lost
	s.Shards.Joining += n.Joining
	for _, state := range []struct {
		name   string
		shards []string
	}{{"lost", shards.Lost}, {"joining", shards.Joining}} {
		for _, shard := range state.shards[:min(len(state.shards), listed-min(listed, len(s.Shards.List)))] {
			s.Shards.List = append(s.Shards.List, shardStatus{n.Node, shard, state.name})
		}
	}
	return nil
}

// placesOfCopies finds out what each node has. A node that is not part of a cluster does not tell.
func (c *command) placesOfCopies(ctx context.Context, s *status) error {
	var p plan
	err := c.send(ctx, http.MethodPost, rebalancePath+"?limit=0", map[string]bool{"dry_run": true}, &p)
	if refusedAs(err, http.StatusBadRequest) || refusedAs(err, http.StatusNotImplemented) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, has := range p.Nodes {
		if has.Removed {
			s.Nodes = append(s.Nodes, nodeStatus{Node: has.Node, State: nodeRemoved})
			s.problem("%s was removed and has copies still", has.Node)
			continue
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if n.Node != has.Node {
				continue
			}
			if n.Zone == "" {
				n.Zone = has.Zone // of its settings
			}
			d, err := c.drain(ctx, n.Node)
			if err != nil && !refusedAs(err, http.StatusNotFound) {
				return err
			}
			if err == nil {
				n.Draining, n.Copies = d.Draining, &d.Copies
			}
			if n.State == nodeHere && !slices.Contains(p.Away, n.Node) {
				n.Bytes = &has.Before
			}
		}
	}
	return nil
}

// statusOfMoves finds out about the rebalance and the jobs.
func (c *command) statusOfMoves(ctx context.Context, s *status) error {
	r, err := c.rebalanceState(ctx)
	switch {
	case refusedAs(err, http.StatusBadRequest): // a node of its own
	case refusedAs(err, http.StatusNotImplemented):
		return nil
	case err != nil:
		return err
	default:
		s.Rebalance = r
		if r.Failed.Copies > 0 {
			s.problem("the rebalance has failed to move %s", copies(r.Failed.Copies))
		}
	}
	var jobs struct{ Jobs []job }
	if err := c.client.Get(ctx, jobsPath, &jobs); err != nil {
		return err
	}
	// Those that failed come first, or the others might leave no space for them.
	slices.SortStableFunc(jobs.Jobs, func(a, b job) int { return urgency(b.State) - urgency(a.State) })
	for _, j := range jobs.Jobs {
		s.Jobs.Counts[j.State]++
		if j.State != jobCompleted && len(s.Jobs.List) < listed {
			s.Jobs.List = append(s.Jobs.List, j)
		}
	}
	if n := s.Jobs.Counts[jobFailed]; n > 0 {
		s.problem("%s failed", count(n, "job has", "jobs have"))
	}
	return nil
}

// urgency orders the states of jobs.
func urgency(state string) int { return slices.Index([]string{stateRunning, jobFailed}, state) }
