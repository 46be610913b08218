package replication

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"divan/httpapi/core"
	"divan/replicator"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// postReplicate answers POST /_replicate. The node that the replication belongs to
// runs it.
func postReplicate(c *core.Call) error {
	q, err := request(c)
	if err != nil {
		return err
	}
	node, err := c.API.Deps.Replicator.Node(q)
	if err != nil {
		return err
	}
	if node == c.API.Deps.Meta.Self() {
		return carryOut(c, q)
	}
	ctx, leave, _ := c.API.JoinFeeds(c.Request.Context())
	defer leave()
	return waited(c.ForwardAs(ctx, node, "/_node/"+url.PathEscape(node)+"/_replicate", longest))
}

// longest is how long a replication may take that somebody waits for.
const longest = 1000 * time.Hour

// postNodeReplicate answers POST /_node/{name}/_replicate, where another node
// sends what belongs to this one.
func postNodeReplicate(c *core.Call) error {
	q, err := request(c)
	if err != nil {
		return err
	}
	return carryOut(c, q)
}

func request(c *core.Call) (*replicator.Request, error) {
	if c.Request.ContentLength != 0 || c.Request.Header.Get("Content-Type") != "" {
		if err := c.RequireJSON(); err != nil {
			return nil, err
		}
	}
	body, err := c.ReadBody(0)
	if err != nil {
		return nil, err
	}
	q, err := c.API.Deps.Replicator.Request(c.Request.Context(), body, c.User)
	return q, failure(err)
}

// carryOut does what is asked for, here.
func carryOut(c *core.Call, q *replicator.Request) error {
	if q.Cancel {
		if err := c.API.Deps.Replicator.Cancel(q); err != nil {
			return err
		}
		return sendAccepted(c, http.StatusOK, q.ID)
	}
	ctx, leave, _ := c.API.JoinFeeds(c.Request.Context())
	defer leave()
	result, err := c.API.Deps.Replicator.Start(ctx, q)
	switch {
	case err != nil:
		return waited(failure(err))
	case q.Continuous():
		return sendAccepted(c, http.StatusAccepted, q.ID)
	default:
		return c.SendAppended(http.StatusOK, result.AppendJSON)
	}
}

func sendAccepted(c *core.Call, status int, id string) error {
	return c.SendJSON(status, append(doc.AppendString([]byte(`{"ok":true,"_local_id":`), id), '}'))
}

// waited is the error of a request that waited for a replication when the server
// stops: the replication goes on later where it was.
func waited(err error) error {
	if errors.Is(err, core.ErrFeedsEnd) {
		return fault.Wrap(fault.Unavailable, "The server stops. The replication can be started again.", err)
	}
	return err
}

// failure is why a replication has failed, as a client is told it. Whoever asked
// for it has to know what another server said, so nothing stays in the log only.
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
