package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds an ini file, in bytes.
const maxFile = 8 << 20

// maxOdd bounds the lines of a file that the log names as ignored: it may be
// no ini file at all.
const maxOdd = 20

// malformedLines is a file with lines that mean nothing.
type malformedLines struct {
	file  string
	lines []int // their numbers; the text may hold a password
}

// readFiles reads ini files in the given order into one layer.
func readFiles(names []string) (l Layer, odd []malformedLines, err error) {
	for _, name := range names {
		files, err := expand(name)
		if err != nil {
			return Layer{}, nil, err
		}
		for _, f := range files {
			text, err := readFile(f)
			if err != nil {
				return Layer{}, nil, fmt.Errorf("read configuration: %w", err)
			}
			if lines := parseINI(text, &l); len(lines) > 0 {
				odd = append(odd, malformedLines{f, lines})
			}
		}
	}
	return l, odd, nil
}

// expand returns the files that a name stands for. A directory laid out like
// CouchDB's etc stands for default.ini, default.d/*.ini, local.ini and
// local.d/*.ini, any other for its *.ini; each group in the order of names.
func expand(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var out []string
	for _, part := range []string{"default.ini", "default.d", "local.ini", "local.d"} {
		path := filepath.Join(name, part)
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("read configuration: %w", err)
		case info.IsDir():
			files, err := inDir(path)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
		default:
			out = append(out, path)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return inDir(name)
}

func inDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) == ".ini" {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

func readFile(name string) (text string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("%s: longer than %d bytes", name, maxFile)
	}
	return string(b), nil
}

// parseINI adds the lines of a file to l, by CouchDB's rules (config:parse_ini):
//
//   - a comment starts at a semicolon that begins a line or follows a space or
//     a tab; elsewhere a semicolon belongs to the value;
//   - "[section]" may hold anything but "]"; lines before the first one, and
//     lines that are neither a section nor have an equals sign, are ignored;
//   - key and value are parted at " = " when that occurs, so that a key may
//     hold an equals sign, else at the first equals sign;
//   - a key without a value hides the key of the files before;
//   - a line that begins with a space or a tab and has no equals sign continues
//     the value of the line before, after one space (CouchDB before 3.4).
//
// It returns the numbers of the lines that are ignored and no comments, the
// first maxOdd of them.
func parseINI(text string, l *Layer) (odd []int) {
	var section, last string // last: key that a continuation line goes on with
	number := 0
	ignore := func() {
		if len(odd) < maxOdd {
			odd = append(odd, number)
		}
	}
	for line := range splitLines(text) {
		number++
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = stripComment(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "["):
			if name, rest, ok := strings.Cut(line[1:], "]"); ok && name != "" && rest == "" {
				section, last = name, ""
			} else {
				ignore()
			}
		case section == "":
			ignore()
		default:
			key, value, ok := cutPair(line)
			switch {
			case !ok && indented && last != "" && !strings.Contains(line, "="):
				l.Put(section, last, l.Set[section][last]+" "+line)
			case !ok:
				last = ""
				ignore()
			case value == "":
				last = ""
				l.Hide(section, key)
			default:
				last = key
				l.Put(section, key, value)
			}
		}
	}
	return odd
}

// cutPair parts a trimmed line into key and value. ok is false when there is
// no key.
func cutPair(line string) (key, value string, ok bool) {
	if key, value, ok = strings.Cut(line, " = "); !ok {
		key, value, ok = strings.Cut(line, "=")
		if key == "" {
			return "", "", false
		}
	}
	key, value = trim(key), trim(value)
	return key, value, ok && key != ""
}

// splitLines yields the lines of a text that may come from any system.
func splitLines(text string) func(yield func(string) bool) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x1a", "\n").Replace(text)
	text = strings.TrimPrefix(text, "\ufeff")
	return slices.Values(strings.Split(text, "\n"))
}

// stripComment trims a line and drops its comment.
func stripComment(line string) string {
	line = trim(line)
	if strings.HasPrefix(line, ";") {
		return ""
	}
	for _, mark := range []string{" ;", "\t;"} {
		if i := strings.Index(line, mark); i >= 0 {
			line = line[:i]
		}
	}
	return trim(line)
}

func trim(s string) string { return strings.TrimSpace(s) }
