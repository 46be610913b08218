package core

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"divan/shard"
	"divan/storage/fault"
)

// This file is /_node/{name}/… for another node: the request travels over the
// cluster port, as the service "http" of that node, which runs the same
// handlers for the user who was identified and authorised here.

// AtNode reports whether a name in a path below /_node stands for this node: _local, its own, or,
// as long as no other node is in its cluster, one that setup scripts of CouchDB take for granted.
func (a *API) AtNode(name string) bool {
	m := a.Deps.Meta
	switch name {
	case "_local", m.Self():
		return true
	case "nonode@nohost", "couchdb@127.0.0.1":
		nodes := m.Nodes()
		return len(nodes) == 0 || len(nodes) == 1 && nodes[0].Name == m.Self()
	}
	return false
}

const (
	serviceHTTP    = "http"           // the service of a node that answers for it
	forwardTimeout = 30 * time.Second // for the answer of another node
	maxForwarded   = 16 << 20         // bytes of a body that goes to another node, or comes back
	forever        = math.MaxInt64    // for what takes as long as the client waits: a replication
	// applyLimit is how long a node waits for the metadata of the node that asks it: longer than
	// an election takes.
	applyLimit = 2 * time.Second

	// forwardSpace and forwardWeight bound what is under way to a node, in bytes: 96 requests,
	// and as many that may take forever. A connection has space for 256 and 64 MiB, and the
	// metadata and repair ask there as well.
	forwardSpace  = 24 << 20
	forwardWeight = 256 << 10
)

// forwarding is the space for requests to other nodes.
type forwarding struct {
	sync.Mutex
	spaces map[forwardTo]*semaphore.Weighted
}

type forwardTo struct {
	node    string
	forever bool
}

// space returns that to a node, for what takes a while or may take forever.
func (f *forwarding) space(node string, forever bool) *semaphore.Weighted {
	f.Lock()
	defer f.Unlock()
	to := forwardTo{node, forever}
	r := f.spaces[to]
	if r == nil {
		if f.spaces == nil {
			f.spaces = make(map[forwardTo]*semaphore.Weighted)
		}
		r = semaphore.NewWeighted(forwardSpace)
		f.spaces[to] = r
	}
	return r
}

// nodeRequest is a request as it travels to another node.
type nodeRequest struct {
	Method string      `json:"method"`
	Target string      `json:"target"` // path and query as the client wrote them
	Header http.Header `json:"header"` // those of forwardedHeaders
	User   nodeUser    `json:"user"`
	Body   []byte      `json:"body,omitempty"` // inflated
	// Applied is the last command on metadata that the asking node has applied, where that
	// matters. The answering node applies it first, so that a right that was given or taken away
	// holds there, too, and counts as down when it cannot within applyLimit.
	Applied uint64 `json:"applied,omitempty"`
}

// nodeUser is the account that sent the request.
type nodeUser struct {
	Name      string   `json:"name,omitempty"`
	Anonymous bool     `json:"anonymous,omitempty"`
	Roles     []string `json:"roles,omitempty"`
}

// nodeAnswer is an answer as it travels back.
type nodeAnswer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"` // those of returnedHeaders
	Body   []byte      `json:"body,omitempty"`
}

// forwardedHeaders are the headers of a request that mean something to the
// handlers of a node, and returnedHeaders those of their answers that do not
// belong to the connection.
var (
	forwardedHeaders = [...]string{"Accept", "Content-Type", "If-Match", "If-None-Match", "Prefer", "X-Couch-Persist"}
	returnedHeaders  = [...]string{"Allow", "Cache-Control", "Content-Length", "Content-Type", "ETag", "Etag", "Location"}
)

// Forward has another node answer the call.
func (c *Call) Forward(node string) error {
	if err := c.API.knownNode(node); err != nil {
		return err
	}
	req := nodeRequest{
		Method: c.Method, Target: c.Request.RequestURI, Header: http.Header{},
		User: nodeUser{Name: c.User.Name, Anonymous: c.User.Anonymous, Roles: c.User.Roles},
	}
	if c.Head {
		req.Method = http.MethodHead
	}
	for _, name := range forwardedHeaders {
		if v := c.Request.Header[name]; len(v) > 0 {
			req.Header[name] = v
		}
	}
	req.Header["X-Couch-Request-Id"] = []string{c.RequestID}
	if c.Body.Announced() {
		var err error
		if req.Body, err = c.Body.ReadAll(maxForwarded); err != nil {
			return err
		}
	}
	answer, err := c.API.askNode(c.Request.Context(), node, req, forwardTimeout)
	if err != nil {
		return err
	}
	return c.Response.sendForwarded(answer)
}

// GetFrom asks another node for what is at target below /_node/{node}, on the account of
// a user, and returns the status and the body of its answer.
func (a *API) GetFrom(ctx context.Context, node, target string, u shard.User, limit time.Duration) (status int, body []byte, err error) {
	answer, err := a.askNode(ctx, node, nodeRequest{
		Method: http.MethodGet, Target: "/_node/" + url.PathEscape(node) + target, User: nodeUser{Name: u.Name, Roles: u.Roles},
	}, limit)
	if err != nil {
		return 0, nil, err
	}
	return answer.Status, answer.Body, nil
}

// GetFromOthers asks all other nodes at once for what is at target below
// /_node/{node}, on the account of a user, and returns the bodies of those that
// answer 200 in time.
func (a *API) GetFromOthers(ctx context.Context, u shard.User, target string, limit time.Duration) [][]byte {
	nodes := slices.DeleteFunc(slices.Clone(a.Members()), func(name string) bool { return name == a.Deps.Meta.Self() })
	bodies := make([][]byte, len(nodes))
	var asking sync.WaitGroup
	for i, node := range nodes {
		asking.Go(func() {
			status, body, err := a.GetFrom(ctx, node, target, u, limit)
			switch {
			case err != nil:
				a.Deps.Logger.Debug("another node does not answer", zap.String("node", node), zap.String("target", target), zap.Error(err))
			case status == http.StatusOK:
				bodies[i] = bytes.TrimSpace(body)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(bodies, func(b []byte) bool { return len(b) == 0 })
}

// PostTo has another node answer a POST of JSON for what is at target below
// /_node/{node}, on the account of a user and by metadata no older than those of this node,
// and returns the status and the body of its answer. It waits for that as long as ctx allows.
func (a *API) PostTo(ctx context.Context, node, target string, u shard.User, body []byte) (status int, text []byte, err error) {
	answer, err := a.askNode(ctx, node, nodeRequest{
		Method: http.MethodPost, Target: "/_node/" + url.PathEscape(node) + target, Header: http.Header{"Content-Type": {"application/json"}},
		User: nodeUser{Name: u.Name, Anonymous: u.Anonymous, Roles: u.Roles}, Body: body,
		Applied: a.Deps.Meta.Applied(),
	}, forever)
	if err != nil {
		return 0, nil, err
	}
	return answer.Status, answer.Body, nil
}

// knownNode refuses the name of a node that this one has never heard of. Erlang has heard
// of "none" and "undefined", which are words of its own, and takes them for nodes that
// are down; so do clients that look for the answer to those.
func (a *API) knownNode(name string) error {
	if name == "none" || name == "undefined" {
		return fault.New(fault.NodeDown, name+" is down")
	}
	if _, known := a.Deps.Meta.Node(name); known {
		return nil
	}
	if slices.Contains(a.Members(), name) {
		return nil
	}
	return fault.New(fault.NotFound, "no such node: "+name)
}

// Members returns the nodes that are alive as far as this one knows.
func (a *API) Members() []string {
	if a.Deps.Cluster == nil {
		return []string{a.Deps.Meta.Self()}
	}
	return a.Deps.Cluster.Members()
}

// askNode sends a request to another node. The error of one that does not
// answer is fault.NodeDown.
func (a *API) askNode(ctx context.Context, node string, req nodeRequest, limit time.Duration) (*nodeAnswer, error) {
	down := fault.New(fault.NodeDown, node+" is down")
	if a.Deps.Cluster == nil {
		return nil, down
	}
	text, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode a request for another node: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	space := a.forwarding.space(node, limit == forever)
	weight := int64(min(len(text)+forwardWeight, forwardSpace))
	if space.Acquire(limited, weight) != nil {
		return nil, cmp.Or(ctx.Err(), error(fault.New(fault.Unavailable, "Too many requests wait for "+node+".")))
	}
	defer space.Release(weight)
	text, err = a.Deps.Cluster.Ask(limited, node, serviceHTTP, text)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil, fault.Is(err, fault.NodeDown), fault.Is(err, fault.Unavailable), fault.Is(err, fault.Closed):
		return nil, down
	default:
		return nil, err
	}
	answer := &nodeAnswer{}
	if err := json.Unmarshal(text, answer); err != nil || answer.Status < 200 || answer.Status > 599 {
		return nil, fmt.Errorf("unreadable answer of %s: %w", node, errors.Join(err, errors.New("no status")))
	}
	return answer, nil
}

// sendForwarded answers with what another node has said.
func (w *Response) sendForwarded(answer *nodeAnswer) error {
	h := w.Header()
	for _, name := range returnedHeaders {
		if v := answer.Header[name]; len(v) > 0 {
			h[name] = v
		}
	}
	if !w.target.Head {
		h["Content-Length"] = []string{strconv.Itoa(len(answer.Body))}
	}
	w.WriteHeader(answer.Status)
	_, err := w.Write(answer.Body)
	return err
}

// ServeNode answers a request of another node for /_node/{this}/…: it is the
// service "http". from is the name of the node that asks; it has identified
// the user and checked what the user may do.
func (a *API) ServeNode(ctx context.Context, _ string, request []byte) ([]byte, error) {
	var req nodeRequest
	if err := json.Unmarshal(request, &req); err != nil {
		return nil, fault.Wrap(fault.BadRequest, "unreadable request of another node", err)
	}
	target, err := url.ParseRequestURI(req.Target)
	if err != nil || !strings.HasPrefix(req.Target, "/_node/") {
		return nil, fault.New(fault.BadRequest, "only requests for a node can be forwarded")
	}
	if req.Applied > 0 {
		soon, cancel := context.WithTimeout(ctx, applyLimit)
		defer cancel()
		if err := a.Deps.Meta.WaitApplied(soon, req.Applied); err != nil {
			return nil, fault.Wrap(fault.Unavailable, a.Deps.Meta.Self()+" lags behind the metadata of the node that asks it.", err)
		}
	}
	r := (&http.Request{
		Method: req.Method, URL: target, RequestURI: req.Target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: req.Header, Body: http.NoBody, Host: a.Deps.Meta.Self(),
	}).WithContext(ctx)
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if len(req.Body) > 0 {
		r.Body, r.ContentLength = readCloser{bytes.NewReader(req.Body)}, int64(len(req.Body))
	}
	w := &recorder{header: http.Header{}}
	c := a.newCall(w, r)
	defer a.release(c)
	c.internal = true // no virtual host stands for the path of a node
	user := shard.User{Name: req.User.Name, Anonymous: req.User.Anonymous, Roles: req.User.Roles}
	if err := c.runForwarded(user); err != nil { //nolint:contextcheck // the call carries the request, and with it its context
		c.fail(err)
	}
	return w.encode()
}

// readCloser is a body in memory.
type readCloser struct{ *bytes.Reader }

// Close implements io.Closer.
func (readCloser) Close() error { return nil }

// runForwarded is run for a request that another node has let in.
func (c *Call) runForwarded(user shard.User) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	if err := c.admit(); err != nil {
		return err
	}
	if self := c.API.Deps.Meta.Self(); len(c.Path) < 2 || c.Path[1] != self { // else it would travel on
		return fault.New(fault.BadRequest, "the request is for another node than "+self)
	}
	if err := c.API.refuseRemoved(&c.Target); err != nil {
		return err
	}
	c.User = user
	c.route = c.API.router.route(&c.Target)
	return c.answer()
}

// recorder keeps an answer for another node.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements io.Writer.
func (w *recorder) Write(p []byte) (int, error) {
	if w.body.Len()+len(p) > maxForwarded {
		return 0, errors.New("the answer is too large to be forwarded")
	}
	return w.body.Write(p)
}

// encode returns the answer as it travels.
func (w *recorder) encode() ([]byte, error) {
	if w.body.Len() > maxForwarded {
		return nil, fault.New(fault.RequestTooLarge, "the answer is too large to be forwarded")
	}
	answer := nodeAnswer{Status: max(w.status, http.StatusOK), Header: http.Header{}, Body: w.body.Bytes()}
	for _, name := range returnedHeaders {
		if v := w.header[name]; len(v) > 0 {
			answer.Header[name] = v
		}
	}
	return json.Marshal(answer)
}
