// Package replicator copies databases: jobs that are asked for by POST
// /_replicate or by documents of replicator databases, on which node they run
// and when, and what is told about them. The packages below it are its parts:
// spec (what is asked), endpoint (what a side of a replication is), local and
// remote (the two kinds of sides), protocol (one replication from its start to
// its end), scheduler (which jobs run when).
package replicator
