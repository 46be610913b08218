package httpapi

import (
	"divan/storage/fault"
	"net/http"

	"github.com/gorilla/mux"
)

// What the tests of the routing tables, which have the rows of all families, need
// of the router.

// routerOf returns the router of an API.
func routerOf(a *engine) *router { return a.router }

// findRoute finds the endpoint of a path.
func findRoute(rt *router, path string) (*call, bool, error) {
	c := &call{scratch: &scratch{}, w: &response{}}
	c.w.c = c
	if err := c.parsePath(path, true); err != nil {
		return nil, false, err
	}
	return c, rt.route(c), nil
}

// routeAgain returns a function that finds endpoints with the same call.
func routeAgain(rt *router) func(path string) bool {
	c := &call{scratch: &scratch{}, w: &response{}}
	c.w.c = c
	return func(path string) bool {
		c.route, c.dbName, c.docID, c.rest = nil, "", "", nil
		return c.parsePath(path, true) == nil && rt.route(c)
	}
}

// endpointOf returns the row that was found, nil when there is none.
func endpointOf(c *call) *route {
	if c.route == nil {
		return nil
	}
	return &c.route.route
}

// handlerOf returns the handler of a method.
func handlerOf(c *call, method string) handler { return c.route.handlerFor(method) }

// patternsOnly is a router that knows no short cuts.
func patternsOnly(rt *router) *router {
	only := *rt
	only.doc, only.words = nil, [tables]map[string]*endpoint{}
	return &only
}

// pathsOf returns the templates of all tables.
func pathsOf(rt *router) []string {
	var out []string
	for _, t := range rt.tables {
		_ = t.Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
			path, err := r.GetPathTemplate()
			out = append(out, path)
			return err
		})
	}
	return out
}

// admitted returns a call that was admitted.
func admitted(a *engine, w http.ResponseWriter, r *http.Request) (*call, error) {
	c := a.newCall(w, r)
	return c, c.admit()
}

// answerTo has the answer of a call written to another connection.
func answerTo(c *call, w http.ResponseWriter) { c.w.inner = w }

// wireError returns what a kind of error is on the wire.
func wireError(k fault.Kind) (status int, name string) {
	w := wireOf(k)
	return w.status, w.name
}

// failureOf returns what a client is told of an error.
func failureOf(c *call, err error) failure { return c.describe(err) }

// isAboutProcess reports whether a node that was removed answers a call.
func isAboutProcess(c *call) bool { return c.aboutProcess() }

// uuidAs writes a UUID in a format.
func uuidAs(u [16]byte, format string) string { return formatUUID(u, format) }
