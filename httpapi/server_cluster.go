package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"divan/cluster"
	"divan/cluster/meta"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getMembership answers GET /_membership.
func getMembership(c *call) error {
	nodes := c.api.deps.Meta.Nodes()
	members := make([]string, 0, len(nodes))
	for _, n := range nodes {
		members = append(members, n.Name)
	}
	known := members
	if self := c.api.deps.Meta.Self(); !slices.Contains(known, self) {
		known = append(slices.Clone(known), self)
		slices.Sort(known)
	}
	out := appendStrings([]byte(`{"all_nodes":`), known)
	out = appendStrings(append(out, `,"cluster_nodes":`...), members)
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// getClusterSetup answers GET /_cluster_setup.
func getClusterSetup(c *call) error {
	var ensure []string
	if text, ok := c.qs("ensure_dbs_exist"); ok {
		value, err := doc.Canonical(nil, []byte(text))
		if err != nil {
			return err
		}
		if ensure, err = parseNames(value); err != nil {
			return err
		}
	}
	state := c.api.deps.Meta.SetupState(ensure)
	return c.sendJSON(http.StatusOK, []byte(`{"state":"`+string(state)+`"}`))
}

// parseNames reads a JSON array of names; the result is not nil.
func parseNames(value []byte) ([]string, error) {
	refusal := fault.New(fault.BadRequest, "`ensure_dbs_exist` must be an array of strings")
	names := []string{}
	if !doc.IsArray(value) {
		return nil, refusal
	}
	err := doc.EachElement(value, func(item []byte) error {
		name, ok := doc.Unquote(item)
		if !ok {
			return refusal
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// setupRequest is the body of POST /_cluster_setup (server-level.md section 4).
type setupRequest struct {
	action, username, password, hash, address string
	port, nodes                               int
	ensure                                    []string // nil: not given
}

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
	m, ctx := c.api.deps.Meta, c.r.Context()
	switch req.action {
	case "enable_single_node":
		err = m.EnableSingleNode(ctx, meta.SingleNode{
			Username: req.username, Password: req.password, PasswordHash: req.hash,
			BindAddress: req.address, Port: req.port, EnsureDBs: req.ensure, Create: c.createSystem,
		})
	case "finish_cluster":
		err = m.FinishCluster(ctx, req.ensure, c.createSystem)
	case "enable_cluster":
		err = c.refuseCluster(req)
	case "add_node", "remove_node", "receive_cookie":
		err = fault.New(fault.BadRequest, "Cluster is not enabled.")
	default:
		err = fault.New(fault.BadRequest, "Invalid Action'")
	}
	if err != nil {
		return err
	}
	return c.sendOK(http.StatusCreated)
}

// createSystem makes a database with the defaults for new ones.
func (c *call) createSystem(ctx context.Context, name string) error {
	return c.api.deps.Coordinator.CreateDB(ctx, name, cluster.CreateOptions{})
}

// refuseCluster says why this node does not become one of several: it has
// founded a cluster of its own.
func (c *call) refuseCluster(req setupRequest) error {
	switch {
	case req.address == "" || req.address == "127.0.0.1" || req.address == "::1":
		return fault.New(fault.BadRequest, "Cluster setup requires a remote bind_address (not 127.0.0.1 nor ::1)")
	case req.nodes == 0:
		return fault.New(fault.BadRequest, "Cluster setup requires node_count to be configured")
	case req.username == "" && len(c.cfg.Admins) == 0:
		return fault.New(fault.BadRequest, "Cluster setup requires admin account to be configured")
	}
	return fault.New(fault.BadRequest, "Cluster is already enabled")
}

// parseSetup reads the body; every action looks at its own members only.
func parseSetup(body []byte) (setupRequest, error) {
	var req setupRequest
	missing := fault.New(fault.BadRequest, "Missing JSON body'") // CouchDB's text, quote included
	value, err := doc.Canonical(nil, body)
	if err != nil || !doc.IsObject(value) {
		return req, missing
	}
	err = doc.EachMember(value, func(name string, value []byte) error {
		text, _ := doc.Unquote(value)
		switch name {
		case "action":
			req.action = text
		case "username":
			req.username = text
		case "password":
			req.password = text
		case "password_hash":
			req.hash = text
		case "bind_address":
			req.address = text
		case "port":
			return setupNumber(&req.port, name, value, 65535)
		case "node_count":
			return setupNumber(&req.nodes, name, value, 1<<20)
		case "ensure_dbs_exist":
			var err error
			req.ensure, err = parseNames(value)
			return err
		}
		return nil
	})
	return req, err
}

// setupNumber reads a number above zero, which may be written as a string.
func setupNumber(to *int, name string, value []byte, most int) error {
	text, ok := doc.Unquote(value)
	if !ok {
		text = string(value)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return fault.Newf(fault.BadRequest, "`%s` must be a positive integer", name)
	}
	*to = n
	return nil
}
