// Package httpapi speaks CouchDB's HTTP API on top of a coordinator.
//
// A request runs through one corridor: api.go (admission, identity, routing,
// the access-log line) → router.go (which endpoint, which methods) →
// authorize.go (who may) → the endpoint's handler → response.go, or errors.go
// when the handler returned an error. Handlers live in one file per endpoint
// family and contribute rows to the routing tables (families.go); they never
// write an error answer themselves, they return a *fault.Error.
//
// A goroutine that a request starts ends with the request.
package httpapi
