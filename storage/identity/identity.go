// Package identity is the empty file that says what a directory is: which store,
// and whose.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"divan/storage/fault"
)

// Identity holds the properties that are fixed when a store is made. It is kept in
// the name of an empty file, STORE-1-<uuid>-<owner>-<copy>[-small][-partitioned]: a name is
// there or not, so that a store is made with two syncs of directories and never half.
type Identity struct {
	UUID        [16]byte
	Partitioned bool
	Copy        uint64 // id of the copy in the map of its database
	Small       bool   // while it has no files of its own it is in package small; may become false
	owner       string // see ownerOf
}

// Prefix begins the name of the file.
const Prefix = "STORE-"

// Newest is the newest format that this program knows.
const Newest = 1

const (
	formatOne         = "1-"
	smallSuffix       = "-small"
	partitionedSuffix = "-partitioned"
)

// FileName returns the name of the file.
func (id Identity) FileName() string {
	name := Prefix + formatOne + hex.EncodeToString(id.UUID[:]) + "-" + id.owner + "-" + strconv.FormatUint(id.Copy, 10)
	if id.Small {
		name += smallSuffix
	}
	if id.Partitioned {
		name += partitionedSuffix
	}
	return name
}

// Is reports whether a file is one that makes its directory a store, of any
// format.
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

// ownerOf returns the part of the file's name that stands for the name of the
// store: the beginning of its hash.
func ownerOf(store string) string {
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:16])
}

// New returns the identity of a new store, which is the copy with that id.
func New(store string, copyID uint64, partitioned bool) Identity {
	id := Identity{Copy: copyID, Partitioned: partitioned, owner: ownerOf(store)}
	_, _ = rand.Read(id.UUID[:]) // never fails
	return id
}

// Check refuses the directory of another store.
func (id Identity) Check(store string) error {
	if id.owner != ownerOf(store) {
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
		if rest, ok = strings.CutPrefix(rest, formatOne); !ok {
			return id, fmt.Errorf("store of an unknown format: %s", f)
		}
		rest, id.Partitioned = strings.CutSuffix(rest, partitionedSuffix)
		rest, id.Small = strings.CutSuffix(rest, smallSuffix)
		if !id.parse(rest) {
			return id, fault.New(fault.Corruption, "malformed file name "+f)
		}
		return id, nil
	}
	return id, fault.New(fault.NoCopy, "no_db_file")
}

// parse reads what comes between the format and the suffixes.
func (id *Identity) parse(rest string) bool {
	parts := strings.Split(rest, "-")
	if len(parts) != 3 {
		return false
	}
	uuid, err := hex.DecodeString(parts[0])
	if err != nil || copy(id.UUID[:], uuid) != len(uuid) || len(uuid) != len(id.UUID) {
		return false
	}
	if id.owner = parts[1]; len(id.owner) != len(ownerOf("")) {
		return false
	}
	id.Copy, err = strconv.ParseUint(parts[2], 10, 64)
	return err == nil && strconv.FormatUint(id.Copy, 10) == parts[2]
}
