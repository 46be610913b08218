package doc

import "strings"

// The prefixes of ids of design documents and of local documents.
const (
	DesignPrefix = "_design/"
	LocalPrefix  = "_local/"
)

// IsLocal reports whether an id is that of a local document: one that belongs to
// this database alone and has no history.
func IsLocal(id string) bool { return strings.HasPrefix(id, LocalPrefix) }
