package node

import (
	"strconv"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// setupRequest is the body of POST /_cluster_setup (server-level.md section 4).
type setupRequest struct {
	action, username, password, hash string
	address                          string   // bind_address
	port, nodes                      int      // 0: not given
	ensure                           []string // nil: not given

	host string // add_node: where the node answers HTTP
	name string // remove_node: the node

	remoteNode, remoteUser, remotePassword string // enable_cluster elsewhere
	remotePort                             int

	invitation core.Invitation // receive_cookie
}

// parseSetup reads the body; every action looks at its own members only, but
// all of them must be of the right type.
func parseSetup(body []byte) (*setupRequest, error) {
	req := &setupRequest{}
	missing := fault.New(fault.BadRequest, "Missing JSON body'") // CouchDB's text, quote included
	value, err := doc.Canonical(nil, body)
	if err != nil || !doc.IsObject(value) {
		return nil, missing
	}
	texts := map[string]*string{
		"username": &req.username, "password": &req.password, "password_hash": &req.hash, "bind_address": &req.address,
		"host": &req.host, "name": &req.name,
		"remote_node": &req.remoteNode, "remote_current_user": &req.remoteUser, "remote_current_password": &req.remotePassword,
		"cookie": &req.invitation.Cookie, "uuid": &req.invitation.UUID,
	}
	err = doc.EachMember(value, func(name string, value []byte) error {
		if to, ok := texts[name]; ok {
			return setupText(to, name, value)
		}
		switch name {
		case "action": // anything but an action's name is an unknown action
			req.action, _ = doc.Unquote(value)
		case "port":
			return setupNumber(&req.port, name, value, maxPort)
		case "remote_port":
			return setupNumber(&req.remotePort, name, value, maxPort)
		case "node_count":
			return setupNumber(&req.nodes, name, value, 1<<20)
		case "ensure_dbs_exist":
			var err error
			req.ensure, err = parseNames(value)
			return err
		case "seeds":
			var err error
			req.invitation.Seeds, err = setupSeeds(value)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return req, nil
}

const maxPort = 65535

// setupText reads a string; null stands for none.
func setupText(to *string, name string, value []byte) error {
	text, ok := doc.Unquote(value)
	if !ok && string(value) != "null" {
		return fault.Newf(fault.BadRequest, "`%s` must be a string", name)
	}
	*to = text
	return nil
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

// setupSeeds reads the addresses of nodes by their names.
func setupSeeds(value []byte) (map[string]string, error) {
	refusal := fault.New(fault.BadRequest, "`seeds` must be an object of names of nodes and their addresses")
	if !doc.IsObject(value) {
		return nil, refusal
	}
	seeds := map[string]string{}
	err := doc.EachMember(value, func(name string, value []byte) error {
		address, ok := doc.Unquote(value)
		if !ok {
			return refusal
		}
		seeds[name] = address
		return nil
	})
	return seeds, err
}
