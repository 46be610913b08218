package reshard

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"divan/httpapi/core"
	"divan/reshard/job"
	"divan/reshard/rebalance"
	"divan/storage/doc"
	"divan/storage/fault"
)

// moreNodes says on a node that stands alone why there is nothing to move.
const moreNodes = "This node is not part of a cluster: there is no other one to move shards to."

// rebalancer returns what moves copies; an error on a node that has none.
func rebalancer(c *core.Call) (*rebalance.Rebalancer, error) {
	if c.API.Deps.Rebalance == nil {
		return nil, fault.New(fault.BadRequest, moreNodes)
	}
	return c.API.Deps.Rebalance, nil
}

// sum is rebalance.Sum in an answer.
type sum struct {
	Copies int   `json:"copies"`
	Bytes  int64 `json:"bytes"`
}

// moveAnswer is a move in an answer.
type moveAnswer struct {
	Database string `json:"db"`
	Range    string `json:"range"`
	From     string `json:"from"`
	To       string `json:"to"`
	Bytes    int64  `json:"bytes"`
	Reason   string `json:"reason,omitempty"`
	Job      string `json:"job,omitempty"`   // empty: it is replaced without one
	State    string `json:"state,omitempty"` // of the job, as Step and Why
	Step     string `json:"step,omitempty"`
	Why      string `json:"why,omitempty"`
}

// leftAnswer is a copy or a node that is not as it should be, and stays so.
type leftAnswer struct {
	Database string `json:"db,omitempty"`
	Range    string `json:"range,omitempty"`
	Node     string `json:"node,omitempty"`
	Reason   string `json:"reason"`
	Why      string `json:"why"`
	Bytes    int64  `json:"bytes"`
}

// nodeAnswer tells the bytes that a node has and will have.
type nodeAnswer struct {
	Node     string `json:"node"`
	Zone     string `json:"zone,omitempty"`
	Draining bool   `json:"draining,omitempty"`
	Removed  bool   `json:"removed,omitempty"` // it is no member any more
	Before   int64  `json:"before"`
	After    int64  `json:"after"`
	Goal     int64  `json:"goal"`
}

// planAnswer is a plan.
type planAnswer struct {
	OK         bool         `json:"ok"`
	DryRun     bool         `json:"dry_run,omitempty"`
	ID         string       `json:"id,omitempty"` // of what was begun
	TotalMoves int          `json:"total_moves"`
	TotalLeft  int          `json:"total_left"`
	Bytes      int64        `json:"bytes"`
	MustMove   int64        `json:"must_move"`
	Nodes      []nodeAnswer `json:"nodes"`
	Away       []string     `json:"away,omitempty"` // nothing moves from or to them
	Left       []leftAnswer `json:"left,omitempty"`
	Moves      []moveAnswer `json:"moves,omitempty"`
}

// How many moves, and how much that is left, an answer lists unless told otherwise, and at most.
const (
	standardMoves = 1000
	mostMoves     = 100_000
)

// postRebalance answers POST /_cluster/rebalance: {"dry_run": true} shows what would be moved, otherwise
// it begins.
func postRebalance(c *core.Call) error {
	r, err := rebalancer(c)
	if err != nil {
		return err
	}
	dry, err := dryRun(c)
	if err != nil {
		return err
	}
	limit, err := movesLimit(c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	p, err := r.Plan(ctx, false)
	if err != nil {
		return err
	}
	answer := answerOf(p, limit)
	if answer.DryRun = dry; dry || len(p.Moves) == 0 {
		return send(c, http.StatusOK, answer)
	}
	rec, err := r.Start(ctx, false, "")
	if err != nil {
		return err
	}
	answer.ID = rec.ID
	return send(c, http.StatusAccepted, answer)
}

// dryRun reads whether a request only wants to see what would be done. Its body may be empty.
func dryRun(c *core.Call) (bool, error) {
	if err := c.Body.RefuseForms(); err != nil {
		return false, err
	}
	text, err := c.Body.ReadAll(0)
	if err != nil || len(text) == 0 {
		return false, err
	}
	if err := c.Body.RequireJSON(); err != nil {
		return false, err
	}
	body, err := jsonObject(text)
	if err != nil {
		return false, err
	}
	switch value := doc.Lookup(body, "dry_run"); string(value) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fault.New(fault.BadRequest, "`dry_run` must be true or false")
	}
}

func movesLimit(c *core.Call) (int, error) {
	text, given := c.QueryValue("limit")
	if !given {
		return standardMoves, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostMoves {
		return 0, fault.Newf(fault.BadRequest, "`limit` must be a number from 0 to %d", mostMoves)
	}
	return n, nil
}

func answerOf(p *rebalance.Plan, limit int) *planAnswer {
	out := &planAnswer{OK: true, TotalMoves: len(p.Moves), TotalLeft: len(p.Left), Bytes: p.Bytes, MustMove: p.MustMove, Away: p.Away, Nodes: []nodeAnswer{}}
	for _, n := range p.Nodes {
		out.Nodes = append(out.Nodes, nodeAnswer{n.Name, n.Zone, n.Draining, !n.Member, n.Before, n.After, n.Goal})
	}
	for i := range p.Left[:min(limit, len(p.Left))] {
		out.Left = append(out.Left, leftOf(&p.Left[i]))
	}
	for _, m := range p.Moves[:min(limit, len(p.Moves))] {
		out.Moves = append(out.Moves, moveAnswer{
			Database: m.DB.Name, Range: m.Range.String(), From: m.From, To: m.To, Bytes: m.Bytes, Reason: m.Reason.String(),
		})
	}
	return out
}

func leftOf(l *rebalance.Left) leftAnswer {
	out := leftAnswer{Node: l.Node, Reason: l.Reason.String(), Why: l.Why.String(), Bytes: l.Bytes}
	if l.DB != nil {
		out.Database, out.Range = l.DB.Name, l.Range.String()
	}
	return out
}

func send(c *core.Call, status int, answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.Response.SendJSON(status, body)
}

// stateAnswer is how far a rebalance is.
type stateAnswer struct {
	State    string       `json:"state"`
	ID       string       `json:"id,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Leaving  bool         `json:"leaving_only,omitempty"` // only what has to leave its node is moved
	Started  string       `json:"start_time,omitempty"`
	Updated  string       `json:"update_time,omitempty"`
	Planned  sum          `json:"planned"`
	Moved    sum          `json:"moved"`
	Failed   sum          `json:"failed"`
	Waiting  int          `json:"waiting"` // copies that have to leave their nodes, and cannot yet
	Running  []moveAnswer `json:"running"`
	Refused  string       `json:"refused,omitempty"` // why moves are not begun
	Failures []moveAnswer `json:"failures,omitempty"`
	Left     []leftSum    `json:"left,omitempty"`
}

type leftSum struct {
	Why string `json:"why"`
	sum
}

// none is the state of a rebalance as long as none was asked for.
const none = "none"

// catchUp waits until this node knows what was asked of another one before; without a leader it is as
// it is.
func catchUp(c *core.Call) {
	soon, cancel := context.WithTimeout(c.Request.Context(), time.Second)
	defer cancel()
	_ = c.API.Deps.Meta.CatchUp(soon)
}

// getRebalance answers GET /_cluster/rebalance.
func getRebalance(c *core.Call) error {
	r, err := rebalancer(c)
	if err != nil {
		return err
	}
	catchUp(c)
	rec, there := r.Record()
	if !there {
		return c.Response.SendJSON(http.StatusOK, []byte(`{"state":"`+none+`","running":[]}`))
	}
	jobs := map[string]*job.Job{}
	for _, j := range c.API.Deps.Reshard.Jobs() {
		jobs[j.ID()] = j
	}
	out := stateAnswer{
		State: string(rec.State), ID: rec.ID, Reason: rec.Reason, Leaving: rec.LeavingOnly, Refused: rec.Refused,
		Started: timestamp(rec.Started), Updated: timestamp(rec.Updated),
		Planned: sum(rec.Planned), Moved: sum(rec.Moved), Failed: sum(rec.Failed), Waiting: rec.Waiting, Running: []moveAnswer{},
	}
	for i := range rec.Batch {
		m := itemAnswer(&rec.Batch[i])
		if j := jobs[m.Job]; j != nil {
			m.State, m.Step, m.Why = string(j.State), string(j.Step), j.Reason
		}
		out.Running = append(out.Running, m)
	}
	for i := range rec.Failures {
		m := itemAnswer(&rec.Failures[i].Item)
		m.Why = rec.Failures[i].Reason
		out.Failures = append(out.Failures, m)
	}
	for _, l := range rec.Left {
		out.Left = append(out.Left, leftSum{l.Why, sum(l.Sum)})
	}
	return send(c, http.StatusOK, out)
}

func itemAnswer(i *rebalance.Item) moveAnswer {
	out := moveAnswer{Database: i.Database, Range: i.Range.String(), From: i.From, To: i.To, Bytes: i.Bytes}
	if !i.Lost {
		out.Job = i.JobID()
	}
	return out
}

// Reasons for which a rebalance is stopped when the request gives none.
const (
	rebalanceStopped   = "Stopped by user"
	rebalanceCancelled = "Cancelled by user"
)

// putRebalance answers PUT /_cluster/rebalance, which stops one or has it go on.
func putRebalance(c *core.Call) error {
	r, err := rebalancer(c)
	if err != nil {
		return err
	}
	run, reason, err := wanted(c, rebalanceStopped)
	if err != nil {
		return err
	}
	if ctx := c.Request.Context(); run {
		err = r.Resume(ctx)
	} else {
		err = r.Stop(ctx, reason)
	}
	return done(c, err)
}

// deleteRebalance answers DELETE /_cluster/rebalance, which ends one and gives up what is under way.
func deleteRebalance(c *core.Call) error {
	r, err := rebalancer(c)
	if err != nil {
		return err
	}
	return done(c, r.Cancel(c.Request.Context(), rebalanceCancelled))
}
