package reduce

import (
	"bytes"
	"slices"

	"divan/storage/collate"
)

// rank is _top_N and _bottom_N: the greatest or least values in the order of
// keys, each once. Its state is these values, the best first.
type rank struct {
	keep int
	top  bool
}

// ranked is a value with its sort key.
type ranked struct{ sort, value []byte }

// Reduce implements Function.
func (f rank) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var best []ranked
	var scratch []byte
	var err error
	for i := range rows {
		if best, scratch, err = f.offer(best, scratch, rows[i].Value); err != nil {
			return dst, err
		}
	}
	return appendRanked(dst, best), nil
}

// Rereduce implements Function.
func (f rank) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var best []ranked
	var scratch []byte
	for _, state := range states {
		for r := (reader{b: state}); len(r.b) > 0; {
			value := r.text()
			if r.bad {
				return dst, errState()
			}
			var err error
			if best, scratch, err = f.offer(best, scratch, value); err != nil {
				return dst, err
			}
		}
	}
	return appendRanked(dst, best), nil
}

// offer puts a value where it belongs among the best, if it does. It returns
// scratch, the memory for sort keys.
func (f rank) offer(best []ranked, scratch, value []byte) ([]ranked, []byte, error) {
	sort, err := collate.AppendKey(scratch[:0], value)
	if err != nil {
		return best, scratch, err
	}
	if len(best) == f.keep && f.compare(best[f.keep-1].sort, sort) < 0 {
		return best, sort, nil
	}
	at, found := slices.BinarySearchFunc(best, sort, func(r ranked, sort []byte) int { return f.compare(r.sort, sort) })
	if found {
		// Which of the values that sort alike is kept must not depend on the order.
		if bytes.Compare(value, best[at].value) < 0 {
			best[at].value = value
		}
		return best, sort, nil
	}
	entry := ranked{value: value}
	if len(best) == f.keep { // the last goes, its memory is used again
		entry.sort = best[f.keep-1].sort
		best = best[:f.keep-1]
	}
	entry.sort = append(entry.sort[:0], sort...)
	return slices.Insert(best, at, entry), sort, nil
}

// compare orders sort keys, the best first.
func (f rank) compare(a, b []byte) int {
	if f.top {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

func appendRanked(dst []byte, best []ranked) []byte {
	for _, r := range best {
		dst = appendText(dst, r.value)
	}
	return dst
}

// Final implements Function.
func (f rank) Final(dst, state []byte) ([]byte, error) {
	dst = append(dst, '[')
	r := reader{b: state}
	for first := true; len(r.b) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		dst = append(dst, r.text()...)
	}
	return append(dst, ']'), r.end()
}
