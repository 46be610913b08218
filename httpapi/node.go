package httpapi

import (
	"net/http"
	"sync"

	"divan/storage/doc"
	"divan/storage/fault"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeFamily is the endpoints below /_node/{name}, and those of the cluster that
// ask the nodes: this one or each of them.
type nodeFamily struct {
	api      *engine
	registry *prometheus.Registry
	admins   sync.Mutex // orders deletions of administrators
}

// routes lists the endpoints. Each row below /_node/{name} looks at the name
// first: this node has the name _local and its own, others answer themselves.
func (n *nodeFamily) routes() []route {
	node := func(path, allow string, m methods) route {
		for _, h := range []*handler{&m.get, &m.post, &m.put, &m.del, &m.any} {
			if *h != nil {
				*h = onNode(*h)
			}
		}
		if m.any == nil {
			m.any = onNode(func(*call) error { return &methodError{allow: allow} })
		}
		return route{table: serverTable, path: "/_node/{node}" + path, allow: allow, methods: m}
	}
	return append(nodeDocRoutes(node), []route{
		{table: serverTable, path: "/_membership", allow: "GET", methods: methods{get: getMembership}},
		{table: serverTable, path: "/_active_tasks", allow: "GET,HEAD", methods: methods{get: getActiveTasks}},
		{table: serverTable, path: "/_cluster_setup", allow: "GET,POST", methods: methods{get: getClusterSetup, post: postClusterSetup}},
		{table: serverTable, path: "/_node", methods: methods{get: noNode, any: noNode}},
		node("", "GET,HEAD", methods{get: getNode}),
		node("/_config", "GET", methods{get: getConfig}),
		node("/_config/_reload", "POST", methods{post: reloadConfig}),
		node("/_config/{section}", "GET", methods{get: getConfigSection}),
		node("/_config/{section}/{key}", "GET,PUT,DELETE", methods{get: getConfigKey, put: putConfigKey, del: n.deleteConfigKey}),
		node("/_stats", "GET", methods{get: getStats}),
		node("/_stats/{path:.*}", "GET", methods{get: getStats}),
		node("/_system", "GET", methods{get: getSystem}),
		node("/_prometheus", "GET", methods{get: n.getPrometheus}),
		node("/_versions", "GET", methods{get: getVersions}),
		node("/_restart", "POST", methods{post: restartNode}),
		node("/_smoosh/status", "GET", methods{get: getSmoosh}),
		node("/_active_tasks", "GET", methods{get: getNodeTasks}),
		node("/{rest:.+}", "", methods{get: notHere, any: notHere}),
	}...)
}

// noNode answers for a path that names no node.
func noNode(*call) error {
	return fault.New(fault.BadRequest, "Incomplete path to _node request")
}

// onNode runs h when the path names this node, and else has the node answer
// that it names.
func onNode(h handler) handler {
	return func(c *call) error {
		if name := c.path[1]; name != "_local" && name != c.api.deps.Meta.Self() {
			return c.forward(name)
		}
		return h(c)
	}
}

// getNode answers GET /_node/{name}.
func getNode(c *call) error {
	out := doc.AppendString([]byte(`{"name":`), c.api.deps.Meta.Self())
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// restartNode answers POST /_node/{name}/_restart, then has the node restart.
func restartNode(c *call) error {
	if c.api.deps.Restart == nil {
		return fault.New(fault.Unavailable, "This node cannot restart itself.")
	}
	if err := c.sendOK(http.StatusOK); err != nil {
		return err
	}
	c.api.deps.Restart()
	return nil
}

// getSmoosh answers GET /_node/{name}/_smoosh/status. Copies are compacted by
// their stores in the background, without channels that could be shown.
func getSmoosh(c *call) error {
	return c.sendJSON(http.StatusOK, []byte(`{"channels":{}}`))
}
