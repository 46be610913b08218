package httpapi

import (
	"errors"
	"net/http"
)

// API is the whole HTTP API. It is safe for concurrent use.
type API struct {
	*engine
	node *nodeFamily
}

// New builds the API.
func New(d Deps) (*API, error) {
	if d.Coordinator == nil || d.Meta == nil || d.Config == nil || d.Auth == nil || d.Logger == nil {
		return nil, errors.New("httpapi: a dependency is missing")
	}
	return mounted(newEngine(d))
}

// mounted gives an API its endpoints: each family is one line. Rows of a table
// are tried in this order: what is called most comes first, and the family of
// databases last, which ends with a row that takes all that is left.
func mounted(a *engine) (*API, error) {
	node, err := newNodeFamily(a)
	if err != nil {
		return nil, err
	}
	a.mount(
		documentRoutes(),
		listingRoutes(),
		changesRoutes(),
		serverRoutes(),
		node.routes(),
		dbRoutes(),
	)
	return &API{engine: a, node: node}, nil
}

// Handler returns the API as an http.Handler for the whole path space.
func (a *API) Handler() http.Handler { return a }

// MetricsHandler serves the metrics of the node for Prometheus, on a port of
// their own.
func (a *API) MetricsHandler() http.Handler { return a.node.metricsHandler() }
