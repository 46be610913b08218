package index

import (
	"strings"

	"divan/storage"
)

// Type says what an index holds and which package keeps it.
type Type string

// The types of indexes.
const (
	View   Type = "view"   // views, and JSON indexes of Mango
	Search Type = "search" // full text
)

// Name names an index of a copy.
type Name struct {
	Type      Type
	Signature string // hexadecimal
}

// String returns the name of its store. That of a view is its signature alone, as it was
// before there were other types.
func (n Name) String() string {
	if n.Type == View {
		return n.Signature
	}
	return string(n.Type) + "-" + n.Signature
}

// parseName reads what String has written.
func parseName(s string) Name {
	if typ, signature, ok := strings.Cut(s, "-"); ok {
		return Name{Type(typ), signature}
	}
	return Name{View, s}
}

// namesOf returns the indexes of a copy that are on disk, in the order of their stores.
func namesOf(e *storage.Engine, copyName string) ([]Name, error) {
	stores, err := e.Indexes().Signatures(copyName)
	out := make([]Name, len(stores))
	for i := range stores {
		out[i] = parseName(stores[i])
	}
	return out, err
}

// Definition is an index that a design document wants.
type Definition struct {
	Name
	Design string // the id of the document
	Label  string // what the document calls the index, for Task; empty: it has no name of its own
	Text   []byte // what counts for the index, as the package of its type reads it
	Manual bool   // it is brought up to date only by those who ask it ("autoupdate": false)
}
