// Package httpapi speaks CouchDB's HTTP API on top of a coordinator: it mounts the
// families of endpoints (api.go) and serves them on connections (listener.go).
//
// What all endpoints share is in httpapi/core: the steps of a
// request, parameters, who may do what, errors, answers, streams, limits. Each
// family of endpoints is a package of its own that imports core, and has a list
// of rows, Routes. A new family is a package and one line in api.go; a new
// endpoint is a row and its handler.
package httpapi
