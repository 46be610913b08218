package httpapi

import (
	"errors"
	"net/http"

	"divan/httpapi/changes"
	"divan/httpapi/core"
	"divan/httpapi/db"
	"divan/httpapi/docs"
	"divan/httpapi/listing"
	"divan/httpapi/node"
	"divan/httpapi/server"
)

// What the API stands on, and what it asks of the node that it serves.
type (
	Deps       = core.Deps
	Cluster    = core.Cluster
	Invitation = core.Invitation
	NodeInfo   = core.NodeInfo
	SeedStatus = core.SeedStatus
	Seed       = core.Seed
	Task       = core.Task
	Figures    = core.Figures
)

// API is the whole HTTP API. It is safe for concurrent use.
type API struct {
	*core.API
	node *node.Family
}

// New builds the API.
func New(d core.Deps) (*API, error) {
	if d.Coordinator == nil || d.Meta == nil || d.Config == nil || d.Auth == nil || d.Logger == nil {
		return nil, errors.New("httpapi: a dependency is missing")
	}
	return mounted(core.New(d))
}

// mounted gives an API its endpoints: each family is one line. Rows of a table
// are tried in this order: what is called most comes first, and the family of
// databases last, which ends with a row that takes all that is left.
func mounted(a *core.API) (*API, error) {
	node, err := node.New(a)
	if err != nil {
		return nil, err
	}
	a.Mount(
		docs.Routes(),
		listing.Routes(),
		changes.Routes(),
		server.Routes(),
		node.Routes(),
		db.Routes(),
	)
	return &API{API: a, node: node}, nil
}

// Handler returns the API as an http.Handler for the whole path space.
func (a *API) Handler() http.Handler { return a }

// MetricsHandler serves the metrics of the node for Prometheus, on a port of
// their own.
func (a *API) MetricsHandler() http.Handler { return a.node.MetricsHandler() }
