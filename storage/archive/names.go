package archive

import (
	"encoding/hex"
	"strings"
)

// RepositoryName is the object that makes a place a repository.
const RepositoryName = "divan-repository"

// The folders of objects.
const (
	PackFolder    = "packs/"
	ContentFolder = "contents/"
	PageFolder    = "pages/"
	BackupFolder  = "backups/"
	MarkFolder    = "prune/"
)

const runExtension = ".json"

// Class says what a shared object is.
type Class uint8

// The classes of objects that several backups share.
const (
	ClassPack Class = iota + 1
	ClassContent
	ClassPage
)

// Name is the name of an object that several backups share.
type Name struct {
	Class Class
	ID    Sum // of a pack its UUID, with zeros behind
}

// PackName returns the name of a pack.
func PackName(id UUID) Name {
	n := Name{Class: ClassPack}
	copy(n.ID[:], id[:])
	return n
}

// String returns the name as targets have it.
func (n Name) String() string {
	text := hex.EncodeToString(n.ID[:])
	switch n.Class {
	case ClassPack:
		return PackFolder + text[:2] + "/" + text[:2*len(UUID{})]
	case ClassContent:
		return ContentFolder + text[:2] + "/" + text
	default:
		return PageFolder + text
	}
}

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Name) UnmarshalText(text []byte) error {
	name, ok := ParseName(string(text))
	if !ok {
		return damaged("a name of an object does not parse")
	}
	*n = name
	return nil
}

// ParseName parses the name of a shared object; false when it is none.
func ParseName(text string) (Name, bool) {
	var n Name
	id := n.ID[:]
	switch {
	case strings.HasPrefix(text, PackFolder):
		n.Class, id = ClassPack, n.ID[:len(UUID{})]
	case strings.HasPrefix(text, ContentFolder):
		n.Class = ClassContent
	default:
		n.Class = ClassPage
	}
	if err := decodeHex(id, []byte(text[strings.LastIndexByte(text, '/')+1:])); err != nil {
		return Name{}, false
	}
	return n, n.String() == text
}

// BackupName returns the name of a header.
func BackupName(id RunID) string { return BackupFolder + id.String() + runExtension }

// MarkName returns the name of a mark.
func MarkName(id RunID) string { return MarkFolder + id.String() + runExtension }

// ParseRunName parses the name of a header or a mark, by its folder.
func ParseRunName(folder, text string) (id RunID, ok bool) {
	text, ok = strings.CutPrefix(text, folder)
	if !ok {
		return RunID{}, false
	}
	if text, ok = strings.CutSuffix(text, runExtension); !ok {
		return RunID{}, false
	}
	err := id.UnmarshalText([]byte(text))
	return id, err == nil
}
