// Package core holds the parts that all endpoints of the HTTP API share.
//
// The steps of a request: api.go (admission, identity, routing,
// the access-log line) → router.go (which endpoint, which methods) →
// authorize.go (who may) → the handler of the endpoint → response.go or stream.go,
// or errors.go when the handler returned an error.
//
// A family of endpoints declares rows (Route) with handlers (Handler) and who may use them
// (Access; server administrators when the row does not say). All of the rows stand in
// testdata/access.txt of package httpapi, which a test holds. A handler gets a Call, with
// the database open where the path names one. The parts of a Call have one concern each:
// Target (what is asked for), Body and Memory (what the client sends, within limits),
// Response (the answer). The handler reads parameters and the body, and answers once, with
// Response.SendJSON and the like or with a Stream. It never writes an error answer itself:
// it returns a *fault.Error, whose kind has a status and a name (package fault).
//
// A goroutine that a request starts ends with the request.
package core
