// Package identity is the empty file that says what a directory is: which store,
// and whose.
package identity

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"divan/storage/fault"
	"divan/storage/marks"
)

// Identity holds the properties that are fixed when a store is made. It is kept in
// the name of an empty file, STORE-3-<uuid>-<owner>-<copy>[-partitioned]: a name is
// there or not, so that a store is made with two syncs of directories and never half.
// In format 2 there is no copy, in format 1 no owner either. Format 4 is 3 for a
// store whose histories may lie in blocks, format 5 is 4 for one that may be among
// the small ones of its node (package small).
type Identity struct {
	UUID        [16]byte
	Partitioned bool
	Copy        uint64 // id of the copy in the map of its database; 0: not told
	Blocks      bool   // histories may lie in blocks; only with Copy
	Small       bool   // while it has no files of its own it is in package small; only with Blocks
	owner       string // see ownerOf; empty in format 1
}

// Prefix begins the name of the file.
const Prefix = "STORE-"

const (
	formatOne         = "1-"
	formatTwo         = "2-"
	formatThree       = "3-"
	formatFour        = "4-"
	formatFive        = "5-"
	partitionedSuffix = "-partitioned"
)

// FileName returns the name of the file.
func (id Identity) FileName() string {
	name := hex.EncodeToString(id.UUID[:])
	switch {
	case id.Copy != 0:
		number := formatThree
		switch {
		case id.Small:
			number = formatFive
		case id.Blocks:
			number = formatFour
		}
		name = number + name + "-" + id.owner + "-" + strconv.FormatUint(id.Copy, 10)
	case id.owner != "":
		name = formatTwo + name + "-" + id.owner
	default:
		name = formatOne + name
	}
	name = Prefix + name
	if id.Partitioned {
		name += partitionedSuffix
	}
	return name
}

// Newest is the newest format that this program knows.
const Newest = 5

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
func ownerOf(store string) string { return marks.Hash(store)[:32] }

// New returns the identity of a new store, which is the copy with that id.
func New(store string, copyID uint64, partitioned bool) Identity {
	id := Identity{Copy: copyID, Partitioned: partitioned, owner: ownerOf(store)}
	_, _ = rand.Read(id.UUID[:]) // never fails
	return id
}

// Of returns the identity as that of the copy with that id.
func (id Identity) Of(store string, copyID uint64) Identity {
	id.Copy, id.owner = copyID, ownerOf(store)
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
		if !slices.Contains([]string{formatOne, formatTwo, formatThree, formatFour, formatFive}, format) {
			return id, fmt.Errorf("store of an unknown format: %s", f)
		}
		rest, id.Partitioned = strings.CutSuffix(rest, partitionedSuffix)
		if !id.parse(format, rest) {
			return id, fault.New(fault.Corruption, "malformed file name "+f)
		}
		return id, nil
	}
	return id, fault.New(fault.NoCopy, "no_db_file")
}

// parse reads what comes behind the format.
func (id *Identity) parse(format, rest string) bool {
	number, copied := "", format != formatOne && format != formatTwo
	if format != formatOne {
		rest, id.owner, _ = strings.Cut(rest, "-")
		if copied {
			id.owner, number, _ = strings.Cut(id.owner, "-")
		}
		if len(id.owner) != len(ownerOf("")) {
			return false
		}
	}
	if copied {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != number {
			return false
		}
		id.Copy, id.Small = n, format == formatFive
		id.Blocks = id.Small || format == formatFour
	}
	raw, err := hex.DecodeString(rest)
	return err == nil && copy(id.UUID[:], raw) == len(raw) && len(raw) == len(id.UUID)
}
