package instance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"divan/storage/fault"
)

// Pebble replays the logs that it finds. That one is gone it does not notice: it opens the instance without the
// edits that were in it, or with those of before. But the files tell which log there has to be:
//
//   - the manifest has the number of the first log that is not flushed;
//   - each opening flushes the logs that it finds, makes a log, and then a file of options. The number of that is the next
//     one, nearly always: compactions may have taken some meanwhile.
//
// A crash while an instance is opened leaves no log at all behind the flush of the last one: the file of options is an
// older one then, and the manifest is newer than the number in it.

// optionsFile begins the name of the file of options.
const optionsFile = "OPTIONS-"

// checkLog returns fault.Corruption when a log is gone that an instance needs.
func (s *files) checkLog(names []string) error {
	manifest, err := atomicfs.ReadMarker(s.shared.FS, s.dir, "manifest")
	if err != nil || manifest == "" {
		return nil //nolint:nilerr // Pebble says it
	}
	text, err := readAll(s.shared.FS, s.shared.FS.PathJoin(s.dir, manifest))
	if err != nil {
		return nil //nolint:nilerr // Pebble says it
	}
	var logs []uint64
	options := uint64(0)
	for _, name := range names {
		if number, ok := logNumber(name); ok {
			logs = append(logs, number)
		}
		options = max(options, numberAfter(name, optionsFile))
	}
	number, missing := missingLog(logs, firstLog(text), options, numberAfter(manifest, "MANIFEST-"))
	if !missing {
		return nil
	}
	return fault.Wrap(fault.Corruption, fmt.Sprintf("The log %06d.log in its directory is missing. Stop the node and put it back, or, to give up the edits that it had, make an empty file of that name there.", number),
		fmt.Errorf("%s/%06d.log is missing", s.dir, number))
}

// missingLog returns the log that is missing among logs. By the manifest, first is the first log
// that is not flushed; options and manifest are the numbers of these files.
func missingLog(logs []uint64, first, options, manifest uint64) (number uint64, missing bool) {
	opened := options > first // the log of the last opening is not flushed
	any, made := false, false
	for _, n := range logs {
		any = any || n >= first
		made = made || n >= first && n < options
	}
	switch {
	case opened && !made:
		return options - 1, true
	case !any && !opened && first > manifest: // it was written to after it was opened
		return first, true
	}
	return 0, false
}

// numberAfter returns the number of a file whose name is a prefix and digits, 0 of others.
func numberAfter(name, prefix string) uint64 {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0
	}
	number, _ := strconv.ParseUint(digits, 10, 64) // a temporary file has no digits
	return number
}

// The first fields of an edit of the manifest: the name of the comparer, and the number of the first log that
// is not flushed.
const (
	comparerTag = 1
	logTag      = 2
)

// firstLog returns the number of the first log that is not flushed, 0: none was.
func firstLog(manifest []byte) (first uint64) {
	records := record.NewReader(bytes.NewReader(manifest), 0)
	for {
		r, err := records.Next()
		if err != nil {
			return first // the end, also of what a crash has cut off
		}
		edit, err := io.ReadAll(r)
		if err != nil {
			return first
		}
		tag, n := binary.Uvarint(edit)
		if n > 0 && tag == comparerTag {
			edit = edit[n:]
			length, n := binary.Uvarint(edit)
			if n <= 0 || uint64(len(edit)-n) < length {
				return first
			}
			edit = edit[n+int(length):]
		}
		if tag, n = binary.Uvarint(edit); n > 0 && tag == logTag {
			if number, m := binary.Uvarint(edit[n:]); m > 0 {
				first = number
			}
		}
	}
}
