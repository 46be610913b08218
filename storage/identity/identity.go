// Package identity is the empty file that says what a directory is: which store,
// and whose.
package identity

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"divan/storage/fault"
	"divan/storage/marks"
)

// Identity is what is fixed when a store is made. It is kept in the name of an
// empty file, STORE-2-<uuid>-<owner>[-partitioned]: a name is there or not, so
// that a store is made with two syncs of directories and never half. In format 1
// there is no owner.
type Identity struct {
	UUID        [16]byte
	Partitioned bool
	owner       string // see ownerOf; empty in format 1
}

// Prefix begins the name of the file.
const Prefix = "STORE-"

const (
	formatOne         = "1-"
	formatTwo         = "2-"
	partitionedSuffix = "-partitioned"
)

// FileName returns the name of the file.
func (id Identity) FileName() string {
	name := Prefix + formatOne + hex.EncodeToString(id.UUID[:])
	if id.owner != "" {
		name = Prefix + formatTwo + hex.EncodeToString(id.UUID[:]) + "-" + id.owner
	}
	if id.Partitioned {
		name += partitionedSuffix
	}
	return name
}

// Newest is the newest format that this program knows.
const Newest = 2

// Is reports whether a file is one that makes its directory a store, of
// whatever format.
func Is(file string) bool { return strings.HasPrefix(file, Prefix) }

// Format returns the format that the name of such a file tells; 0 when it tells
// none.
func Format(file string) int {
	rest, ok := strings.CutPrefix(file, Prefix)
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "-")
	format, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return format
}

// ownerOf is what the name of the file says of the name of the store: the
// beginning of its hash.
func ownerOf(store string) string { return marks.Hash(store)[:32] }

// New returns the identity of a new store.
func New(store string, partitioned bool) Identity {
	id := Identity{Partitioned: partitioned, owner: ownerOf(store)}
	_, _ = rand.Read(id.UUID[:]) // never fails
	return id
}

// Check refuses the directory of another store. Those of format 1 do not say
// whose they are.
func (id Identity) Check(store string) error {
	if id.owner != "" && id.owner != ownerOf(store) {
		return fault.New(fault.Corruption, "The directory is that of another shard.")
	}
	return nil
}

// Find looks for the file among those of a directory. The error is
// fault.NoCopy when there is none: the directory is no store.
func Find(files []string) (id Identity, err error) {
	for _, f := range files {
		rest, ok := strings.CutPrefix(f, Prefix)
		if !ok {
			continue
		}
		format, rest := rest[:min(len(formatOne), len(rest))], rest[min(len(formatOne), len(rest)):]
		if format != formatOne && format != formatTwo {
			return id, fmt.Errorf("store of an unknown format: %s", f)
		}
		rest, id.Partitioned = strings.CutSuffix(rest, partitionedSuffix)
		if format == formatTwo {
			rest, id.owner, _ = strings.Cut(rest, "-")
		}
		raw, err := hex.DecodeString(rest)
		if err != nil || len(raw) != len(id.UUID) || format == formatTwo && len(id.owner) != len(ownerOf("")) {
			return id, fault.New(fault.Corruption, "malformed file name "+f)
		}
		copy(id.UUID[:], raw)
		return id, nil
	}
	return id, fault.New(fault.NoCopy, "no_db_file")
}
