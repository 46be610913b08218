package replication

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"divan/httpapi/core"
	"divan/replicator"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// postReplicate answers POST /_replicate. The node that the replication belongs to
// runs it; when that changes meanwhile, the next one goes on.
func postReplicate(c *core.Call) error {
	q, err := request(c)
	if err != nil {
		return err
	}
	ctx, leave, _ := c.API.JoinFeeds(c.Request.Context())
	defer leave()
	for began := time.Now(); ; {
		err := attempt(ctx, c, q)
		again := fault.Is(err, fault.NodeDown) || moved(err)
		if !again || time.Since(began) > patience {
			return waited(err)
		}
		if pause.For(ctx, lookEvery) != nil {
			return waited(context.Cause(ctx))
		}
	}
}

const (
	// patience is how long another node is looked for after one that was to run a
	// replication is gone.
	patience  = time.Minute
	lookEvery = 500 * time.Millisecond
)

// attempt has the node do what is asked for that it belongs to now, and answers.
func attempt(ctx context.Context, c *core.Call, q *replicator.Request) error {
	node, err := c.API.Deps.Replicator.Requests.Node(ctx, q)
	if err != nil {
		return err
	}
	if node == c.API.Deps.Meta.Self() {
		return carryOut(ctx, c, q)
	}
	status, text, err := c.API.PostTo(ctx, node, "/_replicate", c.User, q.Body)
	switch {
	case err != nil:
		return err
	case status == http.StatusServiceUnavailable && codeOf(text) == replicator.CodeMoved:
		return fault.New(fault.NodeDown, node+" does not run this replication")
	}
	return c.Response.SendJSON(status, bytes.TrimSpace(text))
}

// postNodeReplicate answers POST /_node/{name}/_replicate, where another node
// sends what belongs to this one.
func postNodeReplicate(c *core.Call) error {
	q, err := request(c)
	if err != nil {
		return err
	}
	ctx, leave, _ := c.API.JoinFeeds(c.Request.Context())
	defer leave()
	return waited(carryOut(ctx, c, q))
}

func request(c *core.Call) (*replicator.Request, error) {
	refuse := c.Body.RefuseForms
	if c.Request.ContentLength != 0 {
		refuse = c.Body.RequireJSON
	}
	if err := refuse(); err != nil {
		return nil, err
	}
	body, err := c.Body.ReadAll(0)
	if err != nil {
		return nil, err
	}
	q, err := c.API.Deps.Replicator.Requests.Parse(c.Request.Context(), body, c.User)
	return q, failure(err)
}

// carryOut does what is asked for, here.
func carryOut(ctx context.Context, c *core.Call, q *replicator.Request) error {
	if q.Cancel {
		if err := c.API.Deps.Replicator.Requests.Cancel(q); err != nil {
			return err
		}
		return sendAccepted(c, http.StatusOK, q.ID)
	}
	result, err := c.API.Deps.Replicator.Requests.Start(ctx, q)
	switch {
	case err != nil:
		return failure(err)
	case q.Continuous():
		return sendAccepted(c, http.StatusAccepted, q.ID)
	default:
		return c.Response.SendAppended(http.StatusOK, result.AppendJSON)
	}
}

func sendAccepted(c *core.Call, status int, id string) error {
	return c.Response.SendJSON(status, append(doc.AppendString([]byte(`{"ok":true,"_local_id":`), id), '}'))
}

// moved reports whether another node runs the replication now.
func moved(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == replicator.CodeMoved
}

// codeOf returns the member error of an answer.
func codeOf(text []byte) string {
	code, _ := doc.Unquote(doc.Lookup(text, "error"))
	return code
}

// waited is the error of a request that waited for a replication when the server
// stops: the replication goes on later where it was.
func waited(err error) error {
	if errors.Is(err, core.ErrFeedsEnd) {
		return fault.Wrap(fault.Unavailable, "The server stops. The replication can be started again.", err)
	}
	return err
}

// failure returns the error of a failed replication as a client is told it. The client
// that asked for the replication has to know what another server said, so nothing stays in
// the log only.
func failure(err error) error {
	var f *fault.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, core.ErrFeedsEnd):
		return err
	case !errors.As(err, &f):
		return &core.StatusError{Status: http.StatusInternalServerError, Name: "replication_failed", Reason: err.Error()}
	case f.Code == endpoint.CodeAuth:
		return &core.StatusError{Status: http.StatusInternalServerError, Name: f.Code, Reason: f.Reason}
	}
	return err
}
