package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/storage/doc"
	"divan/storage/fault"
)

// postClusterSetup answers POST /_cluster_setup.
func postClusterSetup(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	body, err := c.readJSON()
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
	m, ctx := c.api.deps.Meta, c.r.Context()
	switch req.action {
	case "enable_single_node":
		if len(m.Nodes()) > 1 { // it would take the copies of everything that is made from now on
			return fault.New(fault.BadRequest, "Cluster is already enabled")
		}
		err = m.EnableSingleNode(ctx, meta.SingleNode{
			Username: req.username, Password: req.password, PasswordHash: req.hash,
			BindAddress: req.address, Port: req.port, EnsureDBs: req.ensure, Create: c.createSystem(),
		})
	case "finish_cluster":
		err = c.patiently(func() error { return m.FinishCluster(ctx, req.ensure, c.createSystem()) })
	case "enable_cluster":
		err = c.enableCluster(req)
	case "add_node":
		err = c.addNode(req)
	case "remove_node":
		err = c.removeNode(req)
	case "receive_cookie":
		return c.receiveCookie(req)
	default:
		err = fault.New(fault.BadRequest, "Invalid Action'")
	}
	if err != nil {
		return err
	}
	return c.sendOK(http.StatusCreated)
}

// createSystem returns what makes a system database, with the defaults for new
// ones.
func (c *call) createSystem() func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		return c.api.deps.Coordinator.CreateDB(ctx, name, cluster.CreateOptions{})
	}
}

// clusterEnabled reports whether this node may take others in.
func (c *call) clusterEnabled() bool {
	m := c.api.deps.Meta
	return c.api.deps.Cluster != nil && (len(m.Nodes()) > 1 || m.SetupState([]string{}) == meta.ClusterFinished)
}

// enableCluster makes this node, or the one that the request names, ready to
// be one of several.
func (c *call) enableCluster(req *setupRequest) error {
	if req.remoteNode != "" {
		return c.enableElsewhere(req)
	}
	switch {
	case c.clusterEnabled():
		return fault.New(fault.BadRequest, "Cluster is already enabled")
	case req.username == "" && len(c.cfg.Admins) == 0, req.username != "" && req.password == "" && req.hash == "":
		return fault.New(fault.BadRequest, "Cluster setup requires admin account to be configured")
	case loopback(cmp.Or(req.address, c.cfg.Chttpd.BindAddress)) && !meta.SaysCluster(c.cfg):
		return fault.New(fault.BadRequest, "Cluster setup requires a remote bind_address (not 127.0.0.1 nor ::1)")
	case req.nodes == 0:
		return fault.New(fault.BadRequest, "Cluster setup requires node_count to be configured")
	case c.api.deps.Cluster == nil:
		return fault.New(fault.BadRequest, "This node stands alone, because [couchdb] single_node is true or nothing says otherwise. "+
			"Set it to false (in local.ini, or DIVAN_COUCHDB__SINGLE_NODE=false), restart the node, and enable the cluster again.")
	}
	return c.enableHere(req)
}

func loopback(address string) bool {
	return address == "127.0.0.1" || address == "::1" || address == "localhost"
}

// enableHere makes this node ready: the administrator, the number of copies,
// and where it listens.
func (c *call) enableHere(req *setupRequest) error {
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
		err := c.patiently(func() error {
			_, err := c.api.deps.Meta.SetConfig(c.r.Context(), change)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// enableElsewhere sends the same request to the node that it names.
func (c *call) enableElsewhere(req *setupRequest) error {
	const what = "Enable cluster"
	body := map[string]any{"action": "enable_cluster"}
	for name, text := range map[string]string{"bind_address": req.address, "username": req.username} {
		if text != "" {
			body[name] = text
		}
	}
	// The stored form travels, so that the administrator is the same there.
	if stored := c.cfg.Admins[req.username]; stored != "" && req.hash == "" {
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
	answer, err := c.api.askRemote(c.r.Context(), c.cfg, remoteCall{
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
func (c *call) addNode(req *setupRequest) error {
	return c.invite(remoteCall{host: req.host, port: req.port, user: req.username, password: req.password}, "")
}

// invite has a node join. wanted is the name that it must have, empty for any.
func (c *call) invite(to remoteCall, wanted string) error {
	const what = "Add node"
	if !c.clusterEnabled() {
		return fault.New(fault.BadRequest, "Cluster is not enabled.")
	}
	inv := c.api.deps.Cluster.Invitation()
	to.body = map[string]any{
		"action": "receive_cookie", "cookie": inv.Cookie, "uuid": inv.UUID, "seeds": inv.Seeds,
	}
	if wanted != "" {
		to.body["name"] = wanted
	}
	answer, err := c.api.askRemote(c.r.Context(), c.cfg, to)
	if err != nil {
		return unreachable(what, err)
	}
	if err := answer.refused(what); err != nil {
		return err
	}
	if answer.Name == "" {
		return fault.New(fault.BadRequest, what+" failed. The node there cannot join this cluster.")
	}
	return c.awaitMember(answer.Name)
}

// awaitMember waits until a node that was invited belongs to the cluster, and
// a little until it can be asked: one that has lost its disk belonged before.
func (c *call) awaitMember(name string) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), joinTimeout)
	defer cancel()
	in := c.poll(ctx, func() bool {
		_, in := c.api.deps.Meta.Node(name)
		return in
	})
	if !in {
		if err := c.r.Context().Err(); err != nil {
			return err
		}
		return fault.Newf(fault.Unavailable, "%s was invited and has not joined within %v; its log says why.", name, joinTimeout)
	}
	ctx, cancel = context.WithTimeout(c.r.Context(), aliveTimeout)
	defer cancel()
	if !c.poll(ctx, func() bool { return slices.Contains(c.api.members(), name) && c.answers(ctx, name) }) {
		c.log.Warn("a node has joined and cannot be asked yet", zap.String("node", name))
	}
	// What is asked for next finds a group that can decide.
	if err := c.patiently(func() error { return c.api.deps.Meta.CatchUp(c.r.Context()) }); err != nil {
		c.log.Warn("a node has joined and there is no majority", zap.String("node", name), zap.Error(err))
	}
	return nil
}

// answers reports whether a node can be asked over the cluster port, which one
// that has not taken up the cluster's secret cannot.
func (c *call) answers(ctx context.Context, name string) bool {
	if name == c.api.deps.Meta.Self() {
		return true
	}
	_, err := c.api.askNode(ctx, name, nodeRequest{
		Method: http.MethodGet, Target: "/_node/" + url.PathEscape(name),
		User: nodeUser{Name: c.user.Name, Roles: c.user.Roles},
	}, aliveTimeout)
	return err == nil
}

// patiently repeats what metadata cannot decide now: while nodes join, the
// group may be without a leader for a moment. A set-up that is done may be done
// again.
func (c *call) patiently(act func() error) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), decideTimeout)
	defer cancel()
	var err error
	c.poll(ctx, func() bool {
		err = act()
		return !fault.Is(err, fault.Unavailable)
	})
	return err
}

// poll asks until ok holds; false when ctx ends first.
func (c *call) poll(ctx context.Context, ok func() bool) bool {
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
func (c *call) removeNode(req *setupRequest) error {
	if !c.clusterEnabled() {
		return fault.New(fault.BadRequest, "Cluster is not enabled.")
	}
	if req.name == "" {
		c.log.Info("remove_node without a name removes nothing", zap.String("request", c.id))
		return nil
	}
	return c.dropNode(req.name)
}

// dropNode takes a node out of the cluster.
func (c *call) dropNode(name string) error { return c.api.deps.Meta.RemoveNode(c.r.Context(), name) }

// receiveCookie answers an invitation: the node that invites posts it here.
// The node restarts after the answer and joins.
func (c *call) receiveCookie(req *setupRequest) error {
	cl := c.api.deps.Cluster
	if cl == nil {
		return fault.New(fault.BadRequest, "The node "+c.api.deps.Meta.Self()+" stands alone, because [couchdb] single_node is true or nothing "+
			"says otherwise. Set it to false (in local.ini, or DIVAN_COUCHDB__SINGLE_NODE=false), restart that node, and add it again.")
	}
	inv := req.invitation
	if inv.Cookie == "" || inv.UUID == "" || len(inv.Seeds) == 0 {
		return fault.New(fault.BadRequest, "An invitation has the members `cookie`, `uuid` and `seeds`; action add_node of a member of the cluster sends it.")
	}
	if self := c.api.deps.Meta.Self(); req.name != "" && req.name != self {
		return fault.New(fault.BadRequest, "Add node failed. The node there is "+self+".")
	}
	member := c.knowsAll(inv.Seeds)
	info, err := cl.Accept(c.r.Context(), inv)
	if err != nil {
		return err
	}
	out := doc.AppendString([]byte(`{"ok":true,"name":`), info.Name)
	out = append(doc.AppendString(append(out, `,"address":`...), info.Address), '}')
	if err := c.sendJSON(http.StatusCreated, out); err != nil {
		return err
	}
	if !member && c.api.deps.Restart != nil {
		c.w.Flush()
		c.api.deps.Restart()
	}
	return nil
}

// knowsAll reports whether this node belongs to the cluster that invites it
// already: it knows all the members that it is told of.
func (c *call) knowsAll(seeds map[string]string) bool {
	for name := range seeds {
		if _, known := c.api.deps.Meta.Node(name); !known {
			return false
		}
	}
	return true
}
