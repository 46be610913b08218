package query

import (
	"fmt"
	"strings"
)

// What a part of a selector keeps in memory, in bytes, rounded up.
const (
	nodeMemory = 384 // a node; a condition is two, with that of its field
	setMemory  = 768 // the argument of $in, $nin or $all, besides its values
	stepMemory = 64  // a name of a path, besides its text
)

// budget is the memory that a selector may still take, in bytes. A short text
// can ask for much: each condition keeps the whole path to it, and .{1000} is a
// thousand instructions. So what is about to be made is taken from the budget
// first.
type budget int

// take fails when fewer than n bytes are left; then none are.
func (b *budget) take(n int) error {
	if n > int(*b) {
		*b = 0
		return invalid("invalid_selector", fmt.Sprintf("The selector is too large: its conditions, "+
			"the paths of their fields and its patterns would take more than %d MB of memory.", maxMemory>>20))
	}
	*b -= budget(n)
	return nil
}

// takePath takes what the steps of a path keep.
func (b *budget) takePath(field string) error {
	return b.take(len(field) + stepMemory*(1+strings.Count(field, ".")))
}
