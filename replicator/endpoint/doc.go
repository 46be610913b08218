// Package endpoint says what one side of a replication is: a database that
// changes are read from, or that they are written to. Package local implements
// it over the coordinator of this node, package remote over HTTP.
//
// Errors are *fault.Error wherever a client can be told: fault.NoDatabase when
// there is no such database, Unauthorized and Forbidden when the credentials
// do not open it. An error that Retryable reports is worth another attempt of
// the whole replication, later; the endpoints have made theirs.
package endpoint
