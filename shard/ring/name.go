package ring

import (
	"strings"

	"divan/storage/fault"
)

const (
	copyRoot   = "shards/"
	emptyPart  = "~" // stands for an empty inner segment of a database name: no name holds a tilde
	suffixMin  = 9   // digits of a suffix: unix seconds, also of a clock that stands before September 2001
	suffixMax  = 19
	dotCouch   = ".couch"
	fileMax    = 255                          // bytes of a file name, on every file system in use
	segmentMax = fileMax - len(".1763600000") // last segment, which carries the suffix
	lastMax    = segmentMax - len(dotCouch)   // as CouchDB: its files end in .couch
	nameMax    = 2048                         // whole name; leaves space below PATH_MAX for the data directory
)

// CopyName returns the name of a copy: "shards/00000000-7fffffff/db.1763600000".
// It is part of the API and the path of the copy's directory below the data
// directory. A database name may hold slashes; an empty segment inside it
// ("a//b") is written "~", so that no two databases share a directory.
func CopyName(r Range, db, suffix string) string {
	var b strings.Builder
	b.Grow(len(copyRoot) + rangeLen + 1 + len(db) + 1 + len(suffix))
	b.WriteString(copyRoot)
	b.WriteString(r.String())
	b.WriteByte('/')
	if strings.Contains(db, "//") {
		parts := strings.Split(db, "/")
		for i, p := range parts[:len(parts)-1] {
			if p == "" {
				parts[i] = emptyPart
			}
		}
		db = strings.Join(parts, "/")
	}
	b.WriteString(db)
	b.WriteByte('.')
	b.WriteString(suffix)
	return b.String()
}

// CopyTail returns what the name of a copy has in common with those of all
// copies of its database, and with no other: what comes after the range. It is
// empty for a name of another shape.
func CopyTail(name string) string {
	if len(name) <= len(copyRoot)+rangeLen {
		return ""
	}
	return name[len(copyRoot)+rangeLen:]
}

// ParseCopyName is the inverse of CopyName. ok is false for a name of another
// shape.
func ParseCopyName(name string) (r Range, db, suffix string, ok bool) {
	rest, found := strings.CutPrefix(name, copyRoot)
	if !found || len(rest) < rangeLen+2 || rest[rangeLen] != '/' {
		return Range{}, "", "", false
	}
	r, err := ParseRange(rest[:rangeLen])
	rest = rest[rangeLen+1:]
	dot := strings.LastIndexByte(rest, '.')
	if err != nil || dot < 1 || !isSuffix(rest[dot+1:]) {
		return Range{}, "", "", false
	}
	db, suffix = rest[:dot], rest[dot+1:]
	if strings.Contains(db, emptyPart) {
		parts := strings.Split(db, "/")
		for i, p := range parts {
			if p == emptyPart {
				parts[i] = ""
			}
		}
		db = strings.Join(parts, "/")
	}
	if CopyName(r, db, suffix) != name {
		return Range{}, "", "", false
	}
	return r, db, suffix, true
}

func isSuffix(s string) bool {
	if len(s) < suffixMin || len(s) > suffixMax {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// ValidateName checks the name of a database (semantics.md section 1). The refusals
// are fault.IllegalDatabaseName and fault.DatabaseNameTooLong with CouchDB's
// texts; other code may rely on a valid name being a relative path without
// "." and ".." segments.
func ValidateName(name string) error {
	if !legal(strings.TrimSuffix(name, dotCouch)) && !IsSystemName(name) {
		return fault.Newf(fault.IllegalDatabaseName, "Name: '%s'. Only lowercase characters (a-z), digits (0-9), "+
			"and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter.", name)
	}
	if !fits(name) {
		return fault.Newf(fault.DatabaseNameTooLong, "At least one path segment of `%s` is too long.", name)
	}
	return nil
}

// legal reports whether name matches ^[a-z][a-z0-9_$()+/-]*$.
func legal(name string) bool {
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_$()+/-") == ""
}

// IsSystemName reports whether name is that of a system database: one of the
// reserved names, alone or behind a legal prefix and a slash.
func IsSystemName(name string) bool {
	switch prefix, last := cutLast(name); last {
	case "_users", "_replicator", "_global_changes", "_metadata":
		return prefix == "" || legal(strings.TrimSuffix(prefix, "/"))
	case "_dbs", "_nodes":
		return prefix == ""
	}
	return false
}

// cutLast splits a name behind its last slash.
func cutLast(name string) (prefix, last string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}

func fits(name string) bool {
	prefix, last := cutLast(name)
	if len(name) > nameMax || len(last) > lastMax {
		return false
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if len(part) > fileMax {
			return false
		}
	}
	return true
}
