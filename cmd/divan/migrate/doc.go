// Package migrate moves the databases of a running CouchDB, of any version from
// 1.1 on, to another server: settings, documents with their whole revision trees, conflicts,
// deletions and attachments, users with the hashes of their passwords, design
// documents, replications. It tells what is different afterwards.
//
// Documents travel as in any replication, from here: neither server needs to
// reach the other one. Nothing is kept but the checkpoints in the databases, so
// that a second run goes on where the first one ended.
//
// Of each database the design documents come last. Their validation functions
// would judge documents that are older than they are, and on the account of an
// administrator; while the source is followed, those that have one do not come
// at all.
package migrate
