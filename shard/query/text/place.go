package text

import (
	"strconv"

	"divan/shard/query"
)

// Limits of what a selector becomes. Beyond them everything is found.
const (
	maxName   = 8 << 10 // of a field with its type: longer ones are not indexed
	maxPlaces = 16      // of one path, see places
)

// longestType is the longest of the endings of names.
const longestType = len(query.TextBoolean)

// Fields that every index has.
const (
	defaultField = "$default"
	namesField   = "$fieldnames"
)

// textObject ends the name of an empty object.
const textObject = "_3aobject"

// place is where values are: an encoded path.
type place struct {
	name string // empty: the document
	many bool   // of elements of arrays: there may be several values
}

// element returns the place of the elements of an array.
func (at place) element() place { return place{at.part(query.ArrayKey).name, true} }

func (at place) part(key string) place {
	name := at.name
	if name != "" {
		name += "."
	}
	return place{string(query.AppendTextKey([]byte(name), key)), at.many}
}

// places returns where a path leads to: a number is a key, or a place in an array. None:
// where that is cannot be looked for.
func places(at place, path []string) []place {
	list := []place{at}
	for _, key := range path {
		var next []place
		for _, p := range list {
			next = append(next, p.part(key))
			if isNumber(key) {
				next = append(next, p.element())
			}
		}
		if list = next; len(list) > maxPlaces {
			return nil
		}
		for _, p := range list {
			if len(p.name)+longestType > maxName {
				return nil
			}
		}
	}
	return list
}

// isNumber reports whether a key may be a place in an array.
func isNumber(key string) bool {
	_, err := strconv.Atoi(key)
	return err == nil
}
