package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archive packs files as the registry does.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A package is taken only with the hash of the lock file, from a registry that may fail now and then, and
// its files stay in its directory.
func TestFetch(t *testing.T) {
	good, bad := archive(t, "package/index.js", "package/deep/a.js"), archive(t, "package/../../../outside.js")
	failures := 1
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case failures > 0:
			failures--
			http.Error(w, "not now", http.StatusBadGateway)
		case r.URL.Path == "/@scope/good/-/good-1.2.3.tgz":
			_, _ = w.Write(good)
		case r.URL.Path == "/bad/-/bad-1.0.0.tgz":
			_, _ = w.Write(bad)
		default:
			http.NotFound(w, r)
		}
	}))
	defer registry.Close()
	t.Setenv("npm_config_registry", registry.URL)
	hash := func(b []byte) string {
		sum := sha512.Sum512(b)
		return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	for _, tc := range []struct{ name, at, version, integrity, refused string }{
		{"taken", "@scope/good", "1.2.3", hash(good), ""},
		{"another hash", "@scope/good", "1.2.3", hash(bad), "the lock file says"},
		{"not there", "none", "1.0.0", hash(good), "404"},
		{"leads outside", "bad", "1.0.0", hash(bad), "escapes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			caches := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", caches)
			lock := filepath.Join(t.TempDir(), "package-lock.json")
			text := fmt.Sprintf(`{"packages":{"":{},"node_modules/%s":{"version":%q,"integrity":%q},"node_modules/elsewhere":{"version":"1","os":["plan9"]}}}`,
				tc.at, tc.version, tc.integrity)
			if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			modules, err := Fetch(t.Context(), lock)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want %q", err, tc.refused)
				}
				if found, _ := filepath.Glob(filepath.Join(caches, "*", "*", "*")); len(found) > 0 {
					t.Errorf("left behind: %q", found)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(modules, tc.at, "deep", "a.js")); err != nil {
				t.Error(err)
			}
			t.Setenv("npm_config_registry", "http://127.0.0.1:1") // nothing is downloaded again
			if again, err := Fetch(t.Context(), lock); err != nil || again != modules {
				t.Errorf("a second time: %q, %v", again, err)
			}
		})
	}
}
