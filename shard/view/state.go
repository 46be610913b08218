package view

import (
	"encoding/binary"
	"slices"

	"divan/storage"
	"divan/storage/collate"
	"divan/storage/fault"
)

// state is the state of an index, stored with every batch.
type state struct {
	// blocks says that the aggregates agree with the rows. A long update leaves
	// them behind and makes them anew at its end; until then they are not used.
	blocks bool
	trees  []treeState
}

// treeState are the totals of one tree of rows.
type treeState struct {
	rows   uint64
	bytes  int64 // of keys and values, as JSON
	height int   // the highest level of a border among its rows; blocks of level height+1 have one, the root

	depth  int                     // elements of the longest array that was a key, groupLevels+1 at most
	built  uint64                  // rows when all blocks were last made
	kept   uint8                   // bits: levels whose groups are kept
	groups [groupLevels + 1]uint64 // entries, by level
}

// stateVersion changes with what is stored, the sort keys of raw order among it.
const stateVersion = 1

// collation is the version of the order of an index, empty when all its views
// are in raw order, of which stateVersion tells.
func (d *Definition) collation() string {
	if !slices.ContainsFunc(d.Views, func(v ViewDefinition) bool { return !v.Raw }) {
		return ""
	}
	return collate.Version
}

func (s *state) append(dst []byte, collation string) []byte {
	flags := byte(0)
	if s.blocks {
		flags = 1
	}
	dst = append(dst, stateVersion, flags)
	dst = binary.AppendUvarint(dst, uint64(len(collation)))
	dst = append(dst, collation...)
	for i := range s.trees {
		t := &s.trees[i]
		dst = binary.AppendUvarint(dst, t.rows)
		dst = binary.AppendVarint(dst, t.bytes)
		for _, n := range [...]uint64{uint64(t.height), uint64(t.depth), t.built, uint64(t.kept)} {
			dst = binary.AppendUvarint(dst, n)
		}
		for _, n := range t.groups {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// getter is an index, or a snapshot of one.
type getter interface {
	Get(dst, key []byte) (value []byte, ok bool, err error)
}

// readState reads the state of an index of a definition; an empty index has
// nothing in it. One that was made with another collation counts as damaged.
func readState(from getter, trees int, collation string) (s state, err error) {
	s.trees = make([]treeState, trees)
	var buf [128]byte
	b, ok, err := from.Get(buf[:0], []byte(stateKey))
	if err != nil {
		return s, err
	}
	if !ok {
		s.blocks = true
		return s, nil
	}
	if len(b) < 2 || b[0] != stateVersion {
		return s, errState()
	}
	s.blocks = b[1]&1 != 0
	b = b[2:]
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) || string(b[used:used+int(n)]) != collation {
		return s, errState()
	}
	b = b[used+int(n):]
	for i := range s.trees {
		t := &s.trees[i]
		var u1, u2 int
		t.rows, u1 = binary.Uvarint(b)
		t.bytes, u2 = binary.Varint(b[max(u1, 0):])
		if u1 <= 0 || u2 <= 0 {
			return s, errState()
		}
		b = b[u1+u2:]
		var height, depth, kept uint64
		fields := [...]*uint64{&height, &depth, &t.built, &kept, &t.groups[0], &t.groups[1], &t.groups[2], &t.groups[3]}
		for _, field := range fields {
			n, used := binary.Uvarint(b)
			if used <= 0 {
				return s, errState()
			}
			*field, b = n, b[used:]
		}
		t.height, t.depth, t.kept = int(height), int(depth), uint8(kept)
	}
	return s, nil
}

func errState() error {
	return fault.New(fault.Corruption, "The index is of another version or collation.")
}

var _ getter = (*storage.IndexSnapshot)(nil)
