package reduce

import "bytes"

// end is _first and _last. Its state is the row: sort key, id and value.
type end struct{ last bool }

// Reduce implements Function.
func (e end) Reduce(dst []byte, rows []Row) ([]byte, error) {
	if len(rows) == 0 {
		return dst, nil
	}
	r := &rows[0]
	if e.last {
		r = &rows[len(rows)-1]
	}
	dst = appendText(dst, r.Sort)
	dst = appendText(dst, []byte(r.ID))
	return append(dst, r.Value...), nil
}

// Rereduce implements Function. Of rows with the same key and id, which are of
// one document and so of one shard, the order of the states decides.
func (e end) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var kept, keptSort, keptID []byte
	for _, state := range states {
		if len(state) == 0 {
			continue
		}
		r := reader{b: state}
		sort, id := r.text(), r.text()
		if r.bad {
			return dst, errState()
		}
		order := bytes.Compare(sort, keptSort)
		if order == 0 {
			order = bytes.Compare(id, keptID)
		}
		if kept == nil || e.last && order >= 0 || !e.last && order < 0 {
			kept, keptSort, keptID = state, sort, id
		}
	}
	return append(dst, kept...), nil
}

// Final implements Function.
func (e end) Final(dst, state []byte) ([]byte, error) {
	if len(state) == 0 {
		return append(dst, "null"...), nil
	}
	r := reader{b: state}
	r.text()
	r.text()
	if r.bad {
		return dst, errState()
	}
	return append(dst, r.b...), nil
}
