package httpapi

import (
	"errors"
	"net/http"

	"divan/httpapi/changes"
	"divan/httpapi/console"
	"divan/httpapi/core"
	"divan/httpapi/db"
	"divan/httpapi/design"
	"divan/httpapi/docs"
	"divan/httpapi/listing"
	"divan/httpapi/mango"
	"divan/httpapi/node"
	"divan/httpapi/replication"
	"divan/httpapi/reshard"
	"divan/httpapi/search"
	"divan/httpapi/server"
	"divan/httpapi/view"
)

// Deps are the parts and settings that the API is built from.
type Deps = core.Deps

// What the API asks of the node that it serves, and what it is told.
type (
	// Cluster are the other nodes.
	Cluster = core.Cluster
	// Limits bounds the resources that the process may take for its clients.
	Limits = core.Limits
	// Invitation holds the data that a node needs to join a cluster.
	Invitation = core.Invitation
	// NodeInfo is an invited node's description of itself.
	NodeInfo = core.NodeInfo
	// SeedStatus tells how far a node has come with its seed list.
	SeedStatus = core.SeedStatus
	// Seed is one node of a seed list.
	Seed = core.Seed
	// Task is an operation that runs in the background.
	Task = core.Task
	// Figures are numbers of the node.
	Figures = core.Figures
)

// API is the whole HTTP API. It is safe for concurrent use.
type API struct {
	*core.API
	node *node.Family
}

// New builds the API.
func New(d Deps) (*API, error) {
	if d.Coordinator == nil || d.Meta == nil || d.Config == nil || d.Auth == nil || d.Designs == nil || d.Scripts == nil || d.Logger == nil {
		return nil, errors.New("httpapi: a dependency is missing")
	}
	return mounted(core.New(d))
}

// mounted gives an API its endpoints.
func mounted(a *core.API) (*API, error) {
	node, err := node.New(a)
	if err != nil {
		return nil, err
	}
	rows, err := routes(a, node)
	if err != nil {
		return nil, err
	}
	a.Mount(rows...)
	return &API{API: a, node: node}, nil
}

// routes lists all endpoints: each family is one line. Rows of a table
// are tried in this order: what is called most comes first, and the family of
// databases last, which ends with a row that takes all that is left.
func routes(a *core.API, node *node.Family) ([][]core.Route, error) {
	queries, err := mango.New(a)
	if err != nil {
		return nil, err
	}
	searches, err := search.New(a)
	if err != nil {
		return nil, err
	}
	pages, err := console.Routes()
	if err != nil {
		return nil, err
	}
	return [][]core.Route{
		view.Routes(),
		design.Routes(),
		searches.Routes(),
		docs.Routes(),
		listing.Routes(),
		queries.Routes(),
		changes.Routes(),
		server.Routes(),
		pages,
		replication.Routes(),
		reshard.Routes(),
		node.Routes(),
		db.Routes(),
	}, nil
}

// Handler returns the API as an http.Handler for the whole path space.
func (a *API) Handler() http.Handler { return a }

// MetricsHandler serves the metrics of the node for Prometheus, on a port of
// their own.
func (a *API) MetricsHandler() http.Handler { return a.node.MetricsHandler() }
