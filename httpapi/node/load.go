package node

import "divan/httpapi/core"

// loadFigures lists the metrics about what clients take of the limits of the node.
func loadFigures(a *core.API) []runtimeFigure {
	c, logins := a.Connections.Stats(), a.Deps.Auth.Figures()
	return []runtimeFigure{
		{"couchdb_connections", "connections of clients", "gauge", "", float64(c.Open)},
		{"couchdb_connections_evicted_total", "connections that were cut off to make room for others", "counter", "", float64(c.Evicted)},
		{"couchdb_connections_refused_total", "connections for which there was no room", "counter", "", float64(c.Refused)},
		{"couchdb_request_bodies_bytes", "memory that the bodies of requests take", "gauge", "", float64(a.BodyMemory())},
		{"couchdb_logins_waiting", "logins that wait for their turn to be checked", "gauge", "", float64(logins.Waiting)},
	}
}
