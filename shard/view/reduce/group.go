package reduce

import (
	"divan/storage/collate"
	"divan/storage/doc"
)

// Exact as a group level makes a group of each key.
const Exact = -1

// GroupSort returns what the sort keys of a group have in common, and no other
// sort key: the part up to the level-th element of an array, any other key
// whole. At level 0 it is empty: everything is one group. It aliases sort.
// Groups sort as these parts do.
func GroupSort(sort []byte, level int) []byte {
	switch level {
	case 0:
		return nil
	case Exact:
		return sort
	}
	return collate.Prefix(sort, level)
}

// AppendGroupKey appends the key that a client gets for the group of key, a
// JSON text: arrays are cut to level elements. At level 0 it is null.
func AppendGroupKey(dst, key []byte, level int) ([]byte, error) {
	switch {
	case level == 0:
		return append(dst, "null"...), nil
	case level == Exact || !doc.IsArray(key):
		return append(dst, key...), nil
	}
	dst = append(dst, '[')
	n := 0
	err := doc.EachElement(key, func(element []byte) error {
		if n++; n <= level {
			if n > 1 {
				dst = append(dst, ',')
			}
			dst = append(dst, element...)
		}
		return nil
	})
	return append(dst, ']'), err
}
