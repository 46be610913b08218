package paths

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/identity"
)

// couchFile ends the names of CouchDB's files.
const couchFile = ".couch"

// EngineMarker begins the name of the file that says in which format of the engine
// a store is: <iteration>.<format> follow.
const EngineMarker = "marker.format-version."

// Readable refuses a data directory that this program cannot serve: one of
// CouchDB, or one with a store or an index of a newer format below one of dirs. It
// changes nothing on disk, so that the program that made the directory finds it as
// it was. It reads the directories that Stores reads; what is below except does not
// count.
func (t *Tree) Readable(except string, dirs ...string) error {
	names, _ := t.FS.List(t.Root) // none: there is nothing yet
	if file := couchFileOf(names); file != "" {
		return errCouchDB(t.Root, file)
	}
	var refusal error
	for _, dir := range dirs {
		err := t.Walk(dir, func(name string, files []string) (below bool, err error) {
			if name == except {
				return false, nil
			}
			below, refusal = t.readableFiles(t.Path(name), files)
			return below, refusal
		})
		if err != nil {
			return refusal // a directory that cannot be read has its own error when it is opened
		}
	}
	return nil
}

// readableFiles looks at the names of a directory's files. below: it is not that of
// a store or of an index, so that there may be some below it.
func (t *Tree) readableFiles(dir string, files []string) (below bool, err error) {
	if file := couchFileOf(files); file != "" {
		return false, errCouchDB(t.Root, t.FS.PathJoin(dir, file))
	}
	below = true
	for _, file := range files {
		if err := newerFormat(dir, file); err != nil {
			return false, err
		}
		if identity.Is(file) || strings.HasPrefix(file, EngineMarker) {
			below = false
		}
	}
	return below, nil
}

// newerFormat refuses a file that says that its directory is of a format that
// this program does not know yet: the store's own, or that of the engine below it.
func newerFormat(dir, file string) error {
	if format := identity.Format(file); format > identity.Newest {
		return errNewer(dir, "store format", format, identity.Newest)
	}
	marker, ok := strings.CutPrefix(file, EngineMarker)
	if !ok {
		return nil
	}
	_, version, _ := strings.Cut(marker, ".") // <iteration>.<format>
	if format, err := strconv.Atoi(version); err == nil && format > int(pebble.FormatNewest) {
		return errNewer(dir, "engine format", format, int(pebble.FormatNewest))
	}
	return nil
}

func errNewer(dir, what string, format, newest int) error {
	return fmt.Errorf("%s is of %s %d and this program knows formats up to %d: a newer version of Divan has written it; "+
		"start that version, or put a backup from before the upgrade in place (docs/operations.md, Upgrade)", dir, what, format, newest)
}

// couchFileOf returns the file of a directory that CouchDB made, or "".
func couchFileOf(names []string) string {
	for _, name := range names {
		if strings.HasSuffix(name, couchFile) {
			return name
		}
	}
	return ""
}

func errCouchDB(dir, file string) error {
	return fmt.Errorf("%s is a data directory of CouchDB (it holds %s), whose files Divan does not read: give Divan a directory of its own, "+
		"start CouchDB on this one, and copy from one to the other with divan import (docs/moving.md)", dir, file)
}
