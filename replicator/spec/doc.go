// Package spec reads the specification of a replication: the body of POST /_replicate and the
// documents of a replicator database, their checks, and the ids that follow from them. It is pure.
package spec
