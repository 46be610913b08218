package small

import (
	"errors"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableBytes is about how large a table of a rewrite is, so that none needs much space at once when it is compacted.
const tableBytes = 16 << 20

// rewriting is how names of tables of a rewrite begin.
const rewriting = "rewrite."

// tables writes tables one after the other.
type tables struct {
	fs      vfs.FS
	path    string // a number after it
	options sstable.WriterOptions
	paths   []string // that were made
	w       *sstable.Writer
}

// add writes keys after those before, into one table.
func (t *tables) add(pairs []pair) error {
	if len(pairs) == 0 {
		return nil
	}
	if t.w != nil && t.w.Raw().EstimatedSize() >= tableBytes {
		if err := t.end(); err != nil {
			return err
		}
	}
	if t.w == nil {
		path := t.path + strconv.Itoa(len(t.paths))
		f, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		t.paths = append(t.paths, path)
		t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.options)
	}
	var err error
	for _, p := range pairs {
		err = errors.Join(err, t.w.Set(p.key, p.value))
	}
	return err
}

// end ends the last table.
func (t *tables) end() error {
	if t.w == nil {
		return nil
	}
	err := t.w.Close()
	t.w = nil
	return err
}

func (t *tables) names() (names []string) {
	for _, p := range t.paths {
		names = append(names, t.fs.PathBase(p))
	}
	return names
}

// RemoveLeft removes tables of a rewrite that are in a directory among the given files.
func RemoveLeft(fs vfs.FS, dir string, files []string) {
	for _, f := range files {
		if strings.HasPrefix(f, rewriting) {
			_ = fs.Remove(fs.PathJoin(dir, f)) // it is looked for with each opening
		}
	}
}
