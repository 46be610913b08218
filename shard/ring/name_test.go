package ring

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

func TestValidateName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, want := range map[string]fault.Kind{
		"a": 0, "films": 0, "a0_$()+-/": 0, "a/b": 0, "a//b": 0, "films.couch": 0,
		"_users": 0, "_replicator": 0, "_global_changes": 0, "_metadata": 0, "_dbs": 0, "_nodes": 0,
		"a/_users": 0, "a/b/_replicator": 0, "a/_global_changes": 0,
		"": fault.IllegalDatabaseName, "Films": fault.IllegalDatabaseName, "1films": fault.IllegalDatabaseName,
		"a b": fault.IllegalDatabaseName, "a.b": fault.IllegalDatabaseName, "_films": fault.IllegalDatabaseName,
		"gölden": fault.IllegalDatabaseName, "a?": fault.IllegalDatabaseName, "a/_films/b": 0,
		"a/_dbs": 0, "/a": fault.IllegalDatabaseName, "/_users": fault.IllegalDatabaseName, "A/_users": fault.IllegalDatabaseName,
		".couch": fault.IllegalDatabaseName, "..": fault.IllegalDatabaseName, "a~": fault.IllegalDatabaseName,
		"a\n": fault.IllegalDatabaseName, "a\x00": fault.IllegalDatabaseName, "_users/a": fault.IllegalDatabaseName,
		"a" + long:                               fault.DatabaseNameTooLong,
		long[:lastMax]:                           0,
		long[:lastMax+1]:                         fault.DatabaseNameTooLong,
		long[:fileMax] + "/a":                    0,
		long[:fileMax+1] + "/a":                  fault.DatabaseNameTooLong,
		strings.Repeat(long[:100]+"/", 30) + "a": fault.DatabaseNameTooLong,
	} {
		if got := fault.KindOf(ValidateName(name)); got != want {
			t.Errorf("%.40q: kind %d, want %d", name, got, want)
		}
	}
	err := ValidateName("Golden")
	if want := "Name: 'Golden'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."; fault.Reason(err) != want {
		t.Errorf("reason %q", fault.Reason(err))
	}
	if err := ValidateName(long); fault.Reason(err) != "At least one path segment of `"+long+"` is too long." {
		t.Errorf("reason %q", fault.Reason(err))
	}
}

// Every valid name gives a path that stays inside the data directory, differs
// from that of every other name, and leads back to the name.
func TestCopyNames(t *testing.T) {
	names := rapid.StringMatching(`[a-z][a-z0-9_$()+/-]{0,12}(\.couch)?`)
	suffixes := rapid.StringMatching(`[0-9]{10,12}`)
	rapid.Check(t, func(t *rapid.T) {
		name, other := names.Draw(t, "name"), names.Draw(t, "other")
		suffix := suffixes.Draw(t, "suffix")
		r := Split(4)[rapid.IntRange(0, 3).Draw(t, "range")]
		got := CopyName(r, name, suffix)
		if path.Clean(got) != got {
			t.Fatalf("%q is no clean path", got)
		}
		if name != other && CopyName(r, other, suffix) == got {
			t.Fatalf("%q and %q share %q", name, other, got)
		}
		if gr, gn, gs, ok := ParseCopyName(got); !ok || gr != r || gn != name || gs != suffix {
			t.Fatalf("%q parsed as %v %q %q %v", got, gr, gn, gs, ok)
		}
	})
	if got := CopyName(Split(2)[0], "db", "1763600000"); got != "shards/00000000-7fffffff/db.1763600000" {
		t.Error(got)
	}
}

func FuzzParseCopyName(f *testing.F) {
	f.Add("shards/00000000-7fffffff/db.1763600000")
	f.Add("shards/00000000-7fffffff/a/~/b.couch.1763600000")
	f.Fuzz(func(t *testing.T, name string) {
		r, db, suffix, ok := ParseCopyName(name)
		if ok && CopyName(r, db, suffix) != name {
			t.Fatalf("%q parsed as %v %q %q", name, r, db, suffix)
		}
	})
	for _, name := range []string{
		"", "shards/", "shards/00000000-7fffffff/", "shards/00000000-7fffffff/.1763600000", "shards/00000000-7fffffff/db",
		"shards/00000000-7fffffff/db.176", "shards/00000000-7fffffff/db.17636000xx", "shards/x/db.1763600000", "meta/raft.db",
	} {
		if _, _, _, ok := ParseCopyName(name); ok {
			f.Errorf("%q parsed", name)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	for b.Loop() {
		Hash("org.couchdb.user:somebody", true)
	}
}
