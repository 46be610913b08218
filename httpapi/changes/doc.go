// Package changes serves feeds: _changes of a database, and _db_updates of the
// server.
package changes
