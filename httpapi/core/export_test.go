package core

import (
	"net/http"

	"github.com/gorilla/mux"
)

// What the tests of the routing tables, which have the rows of all families, need
// of the router.

// Router is the routing tables.
type Router = router

// RouterOf returns the router of an API.
func RouterOf(a *API) *router { return a.router }

// FindRoute finds the endpoint of a path.
func FindRoute(rt *router, path string) (*Call, bool, error) {
	c := &Call{Target: Target{scratch: &scratch{}}}
	if err := c.parsePath(path, true); err != nil {
		return nil, false, err
	}
	c.route = rt.route(&c.Target)
	return c, c.route != nil, nil
}

// RouteAgain returns a function that finds endpoints with the same call.
func RouteAgain(rt *router) func(path string) bool {
	t := &Target{scratch: &scratch{}}
	return func(path string) bool {
		t.DBName, t.DocID, t.Rest = "", "", nil
		return t.parsePath(path, true) == nil && rt.route(t) != nil
	}
}

// EndpointOf returns the row that was found, nil when there is none.
func EndpointOf(c *Call) *Route {
	if c.route == nil {
		return nil
	}
	return &c.route.Route
}

// HandlerOf returns the handler of a method.
func HandlerOf(c *Call, method string) Handler { return c.route.handlerFor(method) }

// PatternsOnly is a router that knows no short cuts.
func PatternsOnly(rt *router) *router {
	only := *rt
	only.doc, only.words = nil, [tables]map[string]*endpoint{}
	return &only
}

// PathsOf returns the templates of all tables.
func PathsOf(rt *router) []string {
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

// Admitted returns a call that was admitted.
func Admitted(a *API, w http.ResponseWriter, r *http.Request) (*Call, error) {
	c := a.newCall(w, r)
	return c, c.admit()
}

// AnswerTo has the answer of a call written to another connection.
func AnswerTo(c *Call, w http.ResponseWriter) { c.Response.inner = w }

// FailureOf returns what a client is told of an error.
func FailureOf(c *Call, err error) Failure { return c.Describe(err) }

// IsAboutProcess reports whether a node that was removed answers a call.
func IsAboutProcess(c *Call) bool { return c.aboutProcess(c.API.Deps.Meta.Self()) }

// UUIDAs writes a UUID in a format.
func UUIDAs(u [16]byte, format string) string { return formatUUID(u, format) }

// Working returns how many turns are taken.
func Working(a *API) int { return len(a.bodies.parsing) }

// RateOf returns how many bytes per second the client of a call has to take.
func RateOf(c *Call) int64 { return c.Memory.rate(c.set) }

// Restart is what happens to the memory of a call whose handler begins again.
func Restart(c *Call) { c.Memory.restart() }
