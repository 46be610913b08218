package child

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// Packages are installed once for each list of them; an attempt that failed does not
// count.
func TestInstallNode(t *testing.T) {
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "npm")
	npm := func(status string) {
		t.Helper()
		text := "#!/bin/sh\ncat package.json >>../runs\nexit " + status + "\n"
		if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	install := func(packages string, want bool) {
		t.Helper()
		files := fstest.MapFS{"package.json": {Data: []byte(packages)}, "x.js": {Data: []byte("x")}}
		if err := InstallNode(t.Context(), dir, files); (err == nil) != want {
			t.Errorf("%s: %v", packages, err)
		}
	}
	npm("1")
	install("a", false)
	npm("0")
	install("b", true)
	install("b", true)
	install("c", true)
	if runs, err := os.ReadFile(filepath.Join(dir, "..", "runs")); string(runs) != "abc" {
		t.Errorf("npm ran for %q, %v", runs, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "x.js")); string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
	if err := InstallNode(t.Context(), dir, fstest.MapFS{}); err == nil {
		t.Error("a program without a list of packages is installed")
	}
}
