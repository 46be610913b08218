package node

import (
	"net/http"
	"strconv"

	"divan/cluster/setup"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getMembership answers GET /_membership: the nodes that are alive as far as
// this one can tell, and those that belong to the cluster. While members run programs
// that know less than this one, "upgrade" says so, a member that CouchDB does not have.
func getMembership(c *core.Call) error {
	nodes := c.API.Deps.Meta.Nodes()
	belong := make([]string, 0, len(nodes))
	for _, n := range nodes {
		belong = append(belong, n.Name)
	}
	out := core.AppendStrings([]byte(`{"all_nodes":`), c.API.Members())
	out = core.AppendStrings(append(out, `,"cluster_nodes":`...), belong)
	if v := c.API.Deps.Meta.ClusterVersions(); len(v.Behind) > 0 {
		out = strconv.AppendUint(append(out, `,"upgrade":{"cluster_version":`...), v.Known, 10)
		out = strconv.AppendUint(append(out, `,"known_by_all":`...), v.Usable, 10)
		out = append(core.AppendStrings(append(out, `,"waits_for":`...), v.Behind), '}')
	}
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// getClusterSetup answers GET /_cluster_setup.
func getClusterSetup(c *core.Call) error {
	var ensure []string
	if text, ok := c.QueryValue("ensure_dbs_exist"); ok {
		value, err := doc.Canonical(nil, []byte(text))
		if err != nil {
			return err
		}
		if ensure, err = parseNames(value); err != nil {
			return err
		}
	}
	state := setup.Decide(c.API.Deps.Config.Load(), c.API.Deps.Meta.Databases(), ensure)
	return c.Response.SendJSON(http.StatusOK, []byte(`{"state":"`+string(state)+`"}`))
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
