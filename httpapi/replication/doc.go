// Package replication has the endpoints of replications: POST /_replicate and
// /_scheduler, and below /_node/{name} what nodes ask each other for them.
package replication
