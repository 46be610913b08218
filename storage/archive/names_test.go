package archive

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := drawSum(t)
		for _, n := range []Name{PackName(drawUUID(t)), {ClassContent, sum}, {ClassPage, sum}} {
			if read, ok := ParseName(n.String()); !ok || read != n {
				t.Fatalf("%s reads as %v, %v", n, read, ok)
			}
		}
		id := drawRunID(t)
		if read, ok := ParseRunName(BackupFolder, BackupName(id)); !ok || read != id {
			t.Fatalf("%v, %v", read, ok)
		}
		if read, ok := ParseRunName(MarkFolder, MarkName(id)); !ok || read != id {
			t.Fatalf("%v, %v", read, ok)
		}
		if later := drawRunID(t); later.Seconds > id.Seconds && later.String() <= id.String() {
			t.Fatalf("%v is not after %v", later, id)
		}
	})
	long := strings.Repeat("ab", 32)
	for _, name := range []string{
		"", "/", RepositoryName, "packs/", "packs/ab/" + long, "packs/aa/" + long[:32], "packs/" + long[:32], "packs/ab/" + long[:30],
		"contents/ab/" + long[:62], "contents/cd/" + long,
		"pages/ab/" + long, "pages/" + long + "0", "pages/" + strings.ToUpper(long), "pages/" + long[:62] + "gg",
		"x/pages/" + long, "other/" + long, long, "backups/20260102T030405Z-0123456789abcdef.json",
	} {
		if read, ok := ParseName(name); ok {
			t.Errorf("%q reads as %v", name, read)
		}
	}
	for _, name := range []string{
		"", "backups/", "backups/20260102T030405Z-0123456789abcdef", "prune/20260102T030405Z-0123456789abcdef.json",
		"backups/20260102T030405Z-0123456789abcde.json",
		"backups/20260102T030405Z-0123456789ABCDEF.json", "backups/20260132T030405Z-0123456789abcdef.json",
		"backups/20260102T030405.5Z-0123456789abcdef.json",
		"backups/20260102T030405Z.json", "backups/20260102T030405,5Z-0123456789abcdef.json",
	} {
		if read, ok := ParseRunName(BackupFolder, name); ok {
			t.Errorf("%q reads as %v", name, read)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add(PackName(UUID{1}).String())
	f.Add(Name{Class: ClassContent}.String())
	f.Add(Name{Class: ClassPage}.String())
	f.Add(BackupName(RunID{Seconds: 1e9}))
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := ParseName(text); ok && n.String() != text {
			t.Fatalf("%q reads as %s", text, n)
		}
		if id, ok := ParseRunName(BackupFolder, text); ok && BackupName(id) != text {
			t.Fatalf("%q reads as %s", text, id)
		}
	})
}
