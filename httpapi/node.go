package httpapi

import (
	"net/http"

	"divan/storage/doc"
	"divan/storage/fault"
)

// nodeRoutes lists the endpoints below /_node/{name}. Each row looks at the name
// first: this node has the name _local and its own, others answer themselves.
func nodeRoutes() []route {
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
		{table: serverTable, path: "/_node", methods: methods{get: noNode, any: noNode}},
		node("", "GET,HEAD", methods{get: getNode}),
		node("/_config", "GET", methods{get: getConfig}),
		node("/_config/_reload", "POST", methods{post: reloadConfig}),
		node("/_config/{section}", "GET", methods{get: getConfigSection}),
		node("/_config/{section}/{key}", "GET,PUT,DELETE", methods{get: getConfigKey, put: putConfigKey, del: deleteConfigKey}),
		node("/_stats", "GET", methods{get: getStats}),
		node("/_stats/{path:.*}", "GET", methods{get: getStats}),
		node("/_system", "GET", methods{get: getSystem}),
		node("/_prometheus", "GET", methods{get: getPrometheus}),
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
