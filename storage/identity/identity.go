// Package identity is the empty files that say what a directory is: the store
// that it is, and whose.
package identity

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"divan/storage/fault"
	"divan/storage/marks"
)

// Identity is what is fixed when a store is made. It is kept in the name of an
// empty file, STORE-<format>-<uuid>[-partitioned]: a name is there or not, so
// that a store is made with two syncs of directories and never half.
type Identity struct {
	UUID        [16]byte
	Partitioned bool
}

// Prefix begins the name of the file.
const Prefix = "STORE-"

const (
	format            = "1-"
	partitionedSuffix = "-partitioned"
)

// FileName returns the name of the file.
func (id Identity) FileName() string {
	name := Prefix + format + hex.EncodeToString(id.UUID[:])
	if id.Partitioned {
		name += partitionedSuffix
	}
	return name
}

// ownerPrefix begins the name of an empty file that says whose directory it is: a
// hash of the store's name follows. Stores of earlier versions have none until
// somebody makes it.
const ownerPrefix = "OF-"

// OwnerFile is the name of that file in the directory of a store.
func OwnerFile(name string) string { return ownerPrefix + marks.Hash(name)[:32] }

// HasOwner reports whether the files of a directory say whose it is.
func HasOwner(files []string) bool {
	return slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, ownerPrefix) })
}

// CheckOwner refuses the directory of another store.
func CheckOwner(files []string, name string) error {
	for _, f := range files {
		if strings.HasPrefix(f, ownerPrefix) && f != OwnerFile(name) {
			return fault.New(fault.Corruption, "The directory is that of another shard.")
		}
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
		if rest, ok = strings.CutPrefix(rest, format); !ok {
			return id, fmt.Errorf("store of an unknown format: %s", f)
		}
		rest, id.Partitioned = strings.CutSuffix(rest, partitionedSuffix)
		raw, err := hex.DecodeString(rest)
		if err != nil || len(raw) != len(id.UUID) {
			return id, fault.New(fault.Corruption, "malformed file name "+f)
		}
		copy(id.UUID[:], raw)
		return id, nil
	}
	return id, fault.New(fault.NoCopy, "no_db_file")
}
