package clusterctl

import (
	"context"
	"net/url"
)

// sum counts copies.
type sum struct {
	Copies int   `json:"copies"`
	Bytes  int64 `json:"bytes"`
}

// move is a copy that goes to another node.
type move struct {
	Database string `json:"db"`
	Range    string `json:"range"`
	From     string `json:"from"`
	To       string `json:"to"`
	Bytes    int64  `json:"bytes"`
	Reason   string `json:"reason,omitempty"`
	Job      string `json:"job,omitempty"`
	Step     string `json:"step,omitempty"`
	Why      string `json:"why,omitempty"` // of one that failed
}

// of names the copy and its way. A move is known by it: there are not two at a time.
func (m *move) of() string {
	return m.Database + " " + m.Range + " from " + m.From + " to " + m.To
}

// left is a copy or a node that is not as it should be, and stays so.
type left struct {
	Database string `json:"db"`
	Range    string `json:"range"`
	Node     string `json:"node"`
	Reason   string `json:"reason"`
	Why      string `json:"why"`
	Bytes    int64  `json:"bytes"`
}

// nodeBytes tells the bytes that a node has and will have.
type nodeBytes struct {
	Node     string `json:"node"`
	Zone     string `json:"zone"`
	Draining bool   `json:"draining"`
	Removed  bool   `json:"removed"`
	Before   int64  `json:"before"`
	After    int64  `json:"after"`
	Goal     int64  `json:"goal"`
}

// plan is the answer to POST /_cluster/rebalance.
type plan struct {
	ID         string      `json:"id"`
	TotalMoves int         `json:"total_moves"`
	Bytes      int64       `json:"bytes"`
	MustMove   int64       `json:"must_move"`
	Nodes      []nodeBytes `json:"nodes"`
	Away       []string    `json:"away"`
	Left       []left      `json:"left"`
	Moves      []move      `json:"moves"`
}

// rebalanceState is the answer to GET /_cluster/rebalance.
type rebalanceState struct {
	State    string `json:"state"`
	ID       string `json:"id,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Leaving  bool   `json:"leaving_only"`
	Started  string `json:"start_time,omitempty"`
	Updated  string `json:"update_time,omitempty"`
	Planned  sum    `json:"planned"`
	Moved    sum    `json:"moved"`
	Failed   sum    `json:"failed"`
	Running  []move `json:"running"`
	Failures []move `json:"failures,omitempty"`
	Left     []struct {
		Why string `json:"why"`
		sum
	} `json:"left,omitempty"`
}

// Of rebalanceState.State.
const (
	stateRunning   = "running"
	stateCompleted = "completed"
)

const rebalancePath = "/_cluster/rebalance"

func (c *command) rebalanceState(ctx context.Context) (*rebalanceState, error) {
	out := &rebalanceState{}
	return out, c.client.Get(ctx, rebalancePath, out)
}

// drain is the answer to GET and POST /_node/NAME/_drain.
type drain struct {
	Node       string `json:"node"`
	Draining   bool   `json:"draining"`
	Copies     int    `json:"copies"`
	Drained    bool   `json:"drained"`
	State      string `json:"state"`
	ID         string `json:"id"`
	TotalMoves int    `json:"total_moves"`
	Bytes      int64  `json:"bytes"`
	Left       []left `json:"left"`
}

func (c *command) drain(ctx context.Context, node string) (*drain, error) {
	out := &drain{}
	return out, c.client.Get(ctx, atNode(node, "_drain"), out)
}

// job is a job of resharding.
type job struct {
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	State  string   `json:"job_state"`
	Step   string   `json:"split_state"`
	Source string   `json:"source"`
	Node   string   `json:"node"`
	To     string   `json:"target_node,omitempty"`
	Target []string `json:"target"`
	Info   struct {
		Reason string `json:"reason,omitempty"`
	} `json:"state_info"`
}

// of names what the job works on.
func (j *job) of() string {
	out := j.Type + " " + j.Source + " on " + j.Node
	if j.To != "" {
		out += " to " + j.To
	}
	return out
}

// Of job.State.
const (
	jobStopped   = "stopped"
	jobCompleted = "completed"
	jobFailed    = "failed"
)

const jobsPath = "/_reshard/jobs"

func jobPath(id string) string { return jobsPath + "/" + url.PathEscape(id) }
