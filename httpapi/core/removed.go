package core

import (
	"net/http"

	"divan/cluster/meta"
	"divan/storage/fault"
)

// refuseRemoved refuses what a node that was taken out of its cluster must not
// answer. What it knows of databases, users and settings is what held when it
// left: an administrator who was dropped since would still be one, and a write
// would be acknowledged that nobody else ever sees. So nobody is asked who they
// are either, except for the few things that are about the process itself.
func (c *Call) refuseRemoved() error {
	if !c.API.Deps.Meta.Removed() || c.aboutProcess() {
		return nil
	}
	return fault.New(fault.Unavailable, meta.TextRemoved)
}

// aboutProcess reports whether the call only looks at this process: nothing
// that it shows comes from the cluster. _membership and _config do, so that
// they are not among them.
func (c *Call) aboutProcess() bool {
	if c.Method != http.MethodGet {
		return false
	}
	p := c.Path
	switch {
	case len(p) == 0:
		return true
	case len(p) == 1:
		return p[0] == "_up" || p[0] == "favicon.ico"
	case p[0] != "_node" || p[1] != "_local" && p[1] != c.API.Deps.Meta.Self():
		return false
	case len(p) == 2:
		return true
	}
	switch p[2] {
	case "_system", "_stats", "_prometheus", "_versions", "_active_tasks", "_smoosh":
		return true
	}
	return false
}
