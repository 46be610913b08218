package node

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/setup"
	"divan/httpapi/auth"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// postClusterSetup answers POST /_cluster_setup.
func postClusterSetup(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	req, err := parseSetup(body)
	if err != nil {
		return err
	}
	if req.hash != "" && !auth.ValidAdmin(req.hash) {
		return fault.New(fault.BadRequest, "`password_hash` must be a stored form of a password, like -pbkdf2:…")
	}
	m, ctx := c.API.Deps.Meta, c.Request.Context()
	switch req.action {
	case "enable_single_node":
		if len(m.Nodes()) > 1 { // it would take the copies of everything that is made from now on
			return fault.New(fault.BadRequest, "Cluster is already enabled")
		}
		err = setup.EnableSingleNode(ctx, m, c.API.Deps.Config.Load(), setup.SingleNode{
			Username: req.username, Password: req.password, PasswordHash: req.hash,
			BindAddress: req.address, Port: req.port, EnsureDBs: req.ensure, Create: createSystem(c),
		})
	case "finish_cluster":
		err = patiently(c, func() error { return setup.FinishCluster(ctx, m, req.ensure, createSystem(c)) })
	case "enable_cluster":
		err = enableCluster(c, req)
	case "add_node":
		err = addNode(c, req)
	case "remove_node":
		err = removeNode(c, req)
	case "receive_cookie":
		return receiveCookie(c, req)
	default:
		err = fault.New(fault.BadRequest, "Invalid Action'")
	}
	if err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusCreated)
}

// createSystem returns what makes a system database, with the defaults for new
// ones.
func createSystem(c *core.Call) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		return c.API.Deps.Coordinator.CreateDB(ctx, name, cluster.CreateOptions{})
	}
}

// clusterEnabled reports whether this node may take others in.
func clusterEnabled(c *core.Call) bool {
	m := c.API.Deps.Meta
	return c.API.Deps.Cluster != nil && (len(m.Nodes()) > 1 || setup.Decide(c.API.Deps.Config.Load(), m.Databases(), []string{}) == setup.ClusterFinished)
}

// enableCluster makes this node, or the one that the request names, ready to
// be one of several.
func enableCluster(c *core.Call, req *setupRequest) error {
	if req.remoteNode != "" {
		return enableElsewhere(c, req)
	}
	switch {
	case clusterEnabled(c):
		return fault.New(fault.BadRequest, "Cluster is already enabled")
	case req.username == "" && len(c.Config.Admins) == 0, req.username != "" && req.password == "" && req.hash == "":
		return fault.New(fault.BadRequest, "Cluster setup requires admin account to be configured")
	case loopback(cmp.Or(req.address, c.Config.Chttpd.BindAddress)) && !setup.SaysCluster(c.Config):
		return fault.New(fault.BadRequest, "Cluster setup requires a remote bind_address (not 127.0.0.1 nor ::1)")
	case req.nodes == 0:
		return fault.New(fault.BadRequest, "Cluster setup requires node_count to be configured")
	case c.API.Deps.Cluster == nil:
		return errAlone()
	}
	return enableHere(c, req)
}

// errAlone is the refusal of a node without a cluster port, which opens at a start only.
func errAlone() error {
	return fault.New(fault.BadRequest, "This node stands alone, because [couchdb] single_node is true or nothing says otherwise. "+
		"Set it to false (in local.ini, or DIVAN_COUCHDB__SINGLE_NODE=false), restart the node, and enable the cluster again.")
}

func loopback(address string) bool {
	return address == "127.0.0.1" || address == "::1" || address == "localhost"
}

// enableHere makes this node ready: the administrator, the number of copies,
// and where it listens.
func enableHere(c *core.Call, req *setupRequest) error {
	var changes []meta.ConfigChange
	set := func(section, key, value string, wide bool) {
		changes = append(changes, meta.ConfigChange{Section: section, Key: key, Value: value, ClusterWide: wide})
	}
	if req.username != "" {
		set(adminSection, req.username, cmp.Or(req.hash, req.password), true)
	}
	set("cluster", "n", strconv.Itoa(min(req.nodes, 3)), true)
	if req.port != 0 {
		set("chttpd", "port", strconv.Itoa(req.port), false)
	}
	if req.address != "" {
		set("chttpd", "bind_address", req.address, false)
	}
	for _, change := range changes {
		if err := config.Check(change.Section, change.Key, change.Value); err != nil {
			return err
		}
	}
	for _, change := range changes {
		err := patiently(c, func() error {
			_, err := c.API.Deps.Meta.Config.Set(c.Request.Context(), change)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// enableElsewhere sends the same request to the node that it names.
func enableElsewhere(c *core.Call, req *setupRequest) error {
	const what = "Enable cluster"
	body := map[string]any{"action": "enable_cluster"}
	for name, text := range map[string]string{"bind_address": req.address, "username": req.username} {
		if text != "" {
			body[name] = text
		}
	}
	// The stored form travels, so that the administrator is the same there.
	if stored := c.Config.Admins[req.username]; stored != "" && req.hash == "" {
		body["password_hash"] = stored
	} else if req.hash != "" {
		body["password_hash"] = req.hash
	} else if req.password != "" {
		body["password"] = req.password
	}
	if req.port != 0 {
		body["port"] = req.port
	}
	if req.nodes != 0 {
		body["node_count"] = req.nodes
	}
	answer, err := askRemote(c.Request.Context(), c.API, c.Config, remoteCall{
		host: req.remoteNode, port: cmp.Or(req.remotePort, req.port),
		user: cmp.Or(req.remoteUser, req.username), password: cmp.Or(req.remotePassword, req.password), body: body,
	})
	if err != nil {
		return unreachable(what, err)
	}
	return answer.refused(what)
}

const (
	// joinTimeout bounds how long an invited node has to become a member, and
	// aliveTimeout how long it then has to answer.
	joinTimeout  = 30 * time.Second
	aliveTimeout = 10 * time.Second
	joinPoll     = 50 * time.Millisecond
	// decideTimeout bounds how long the nodes have to find a leader.
	decideTimeout = 15 * time.Second
)

// addNode invites a node into the cluster and waits until it has joined. A
// node that is a member already is left as it is.
func addNode(c *core.Call, req *setupRequest) error {
	return invite(c, remoteCall{host: req.host, port: req.port, user: req.username, password: req.password}, "")
}

// invite has a node join. wanted is the name that it must have, empty for any.
func invite(c *core.Call, to remoteCall, wanted string) error {
	const what = "Add node"
	if c.API.Deps.Cluster == nil && !c.Config.CouchDB.SingleNode && c.Config.Cluster.N != 1 {
		return errAlone() // it has been told otherwise since its start
	}
	if !clusterEnabled(c) {
		return fault.New(fault.BadRequest, "Cluster is not enabled.")
	}
	inv := c.API.Deps.Cluster.Invitation()
	to.body = map[string]any{
		"action": "receive_cookie", "cookie": inv.Cookie, "uuid": inv.UUID, "seeds": inv.Seeds,
	}
	if wanted != "" {
		to.body["name"] = wanted
	}
	answer, err := askRemote(c.Request.Context(), c.API, c.Config, to)
	if err != nil {
		return unreachable(what, err)
	}
	if err := answer.refused(what); err != nil {
		return err
	}
	if answer.Name == "" {
		return fault.New(fault.BadRequest, what+" failed. The node there cannot join this cluster.")
	}
	return awaitMember(c, answer.Name)
}

// awaitMember waits until a node that was invited belongs to the cluster, and
// a little until it can be asked: one that has lost its disk belonged before.
func awaitMember(c *core.Call, name string) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), joinTimeout)
	defer cancel()
	in := poll(ctx, func() bool {
		_, in := c.API.Deps.Meta.Node(name)
		return in
	})
	if !in {
		if err := c.Request.Context().Err(); err != nil {
			return err
		}
		return fault.Newf(fault.Unavailable, "%s was invited and has not joined within %v; its log says why.", name, joinTimeout)
	}
	ctx, cancel = context.WithTimeout(c.Request.Context(), aliveTimeout)
	defer cancel()
	if !poll(ctx, func() bool { return slices.Contains(c.API.Members(), name) && answers(ctx, c, name) }) {
		c.Log.Warn("a node has joined and cannot be asked yet", zap.String("node", name))
	}
	// What is asked for next finds a group that can decide.
	if err := patiently(c, func() error { return c.API.Deps.Meta.CatchUp(c.Request.Context()) }); err != nil {
		c.Log.Warn("a node has joined and there is no majority", zap.String("node", name), zap.Error(err))
	}
	return nil
}

// answers reports whether a node can be asked over the cluster port, which one
// that has not taken up the cluster's secret cannot.
func answers(ctx context.Context, c *core.Call, name string) bool {
	if name == c.API.Deps.Meta.Self() {
		return true
	}
	_, _, err := c.API.GetFrom(ctx, name, "", c.User, aliveTimeout)
	return err == nil
}

// patiently repeats what metadata cannot decide now: while nodes join, the
// group may be without a leader for a moment. A set-up that is done may be done
// again.
func patiently(c *core.Call, act func() error) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), decideTimeout)
	defer cancel()
	var err error
	poll(ctx, func() bool {
		err = act()
		return !fault.Is(err, fault.Unavailable)
	})
	return err
}

// poll asks until ok holds; false when ctx ends first.
func poll(ctx context.Context, ok func() bool) bool {
	tick := time.NewTicker(joinPoll)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// removeNode takes a node out of the cluster. Without a name it only writes to
// the log, as in CouchDB.
func removeNode(c *core.Call, req *setupRequest) error {
	if !clusterEnabled(c) {
		return fault.New(fault.BadRequest, "Cluster is not enabled.")
	}
	if req.name == "" {
		c.Log.Info("remove_node without a name removes nothing", zap.String("request", c.RequestID))
		return nil
	}
	return dropNode(c, req.name)
}

// dropNode takes a node out of the cluster.
func dropNode(c *core.Call, name string) error {
	return c.API.Deps.Meta.RemoveNode(c.Request.Context(), name)
}

// receiveCookie answers an invitation: the node that invites posts it here.
// The node restarts after the answer and joins.
func receiveCookie(c *core.Call, req *setupRequest) error {
	cl := c.API.Deps.Cluster
	if cl == nil {
		return fault.New(fault.BadRequest, "The node "+c.API.Deps.Meta.Self()+" stands alone, because [couchdb] single_node is true or nothing "+
			"says otherwise. Set it to false (in local.ini, or DIVAN_COUCHDB__SINGLE_NODE=false), restart that node, and add it again.")
	}
	inv := req.invitation
	if inv.Cookie == "" || inv.UUID == "" || len(inv.Seeds) == 0 {
		return fault.New(fault.BadRequest, "An invitation has the members `cookie`, `uuid` and `seeds`; action add_node of a member of the cluster sends it.")
	}
	if self := c.API.Deps.Meta.Self(); req.name != "" && req.name != self {
		return fault.New(fault.BadRequest, "Add node failed. The node there is "+self+".")
	}
	member := knowsAll(c, inv.Seeds)
	info, err := cl.Accept(c.Request.Context(), inv)
	if err != nil {
		return err
	}
	out := doc.AppendString([]byte(`{"ok":true,"name":`), info.Name)
	out = append(doc.AppendString(append(out, `,"address":`...), info.Address), '}')
	err = c.Response.SendJSON(http.StatusCreated, out)
	if !member && c.API.Deps.Restart != nil { // also when the answer is lost: the invitation is durable
		c.Response.Flush()
		c.API.Deps.Restart()
	}
	return err
}

// knowsAll reports whether this node belongs to the cluster that invites it
// already: it knows all the members that it is told of.
func knowsAll(c *core.Call, seeds map[string]string) bool {
	for name := range seeds {
		if _, known := c.API.Deps.Meta.Node(name); !known {
			return false
		}
	}
	return true
}
