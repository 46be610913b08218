// Package npm fetches packages of the npm registry that a lock file names, without Node.js.
package npm

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// locked is a package in the lock file of npm.
type locked struct {
	Version, Integrity string
	OS, CPU            []string // empty: any
}

// fits reports whether a package is for this machine.
func (l *locked) fits() bool {
	arch := map[string]string{"amd64": "x64", "386": "ia32"}[runtime.GOARCH]
	return (len(l.OS) == 0 || slices.Contains(l.OS, runtime.GOOS)) &&
		(len(l.CPU) == 0 || slices.Contains(l.CPU, cmp.Or(arch, runtime.GOARCH)))
}

// maxArchive bounds the archive of one package, in bytes, and what it unpacks to.
const maxArchive, maxUnpacked = 64 << 20, 256 << 20

// timeout bounds one download.
const timeout = 5 * time.Minute

// retries is how often a download is tried again.
const retries = 2

// Fetch returns the directory with the packages of a lock file, each of which has the hash that is
// written there. They are kept among the user's caches, by the hash of the lock file. The registry
// is that of npm, or what the variable npm_config_registry says.
func Fetch(ctx context.Context, lockFile string) (modules string, err error) {
	text, err := os.ReadFile(lockFile)
	if err != nil {
		return "", err
	}
	var lock struct{ Packages map[string]*locked }
	if err := json.Unmarshal(text, &lock); err != nil {
		return "", fmt.Errorf("%s: %w", lockFile, err)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	dir := filepath.Join(caches, "divan-console", hex.EncodeToString(sum[:8]))
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unpacked, err := os.MkdirTemp(dir, "unpack-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(unpacked) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for at, p := range lock.Packages {
		name, ok := strings.CutPrefix(at, "node_modules/")
		if !ok || !p.fits() {
			continue
		}
		group.Go(func() error {
			if err := download(ctx, name, p, filepath.Join(unpacked, filepath.FromSlash(name))); err != nil {
				return fmt.Errorf("package %s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	if err := os.Rename(unpacked, modules); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return modules, nil
}

// download unpacks a package of the registry into a directory.
func download(ctx context.Context, name string, p *locked, dir string) error {
	if i := strings.LastIndex(name, "node_modules/"); i >= 0 {
		return errors.New("two versions of it in one lock file") // none of ours has any
	}
	registry := cmp.Or(os.Getenv("npm_config_registry"), "https://registry.npmjs.org")
	from := fmt.Sprintf("%s/%s/-/%s-%s.tgz", strings.TrimSuffix(registry, "/"), name, path.Base(name), p.Version)
	archive, err := get(ctx, from)
	for range retries {
		if err == nil || ctx.Err() != nil {
			break
		}
		archive, err = get(ctx, from)
	}
	if err != nil {
		return err
	}
	sum := sha512.Sum512(archive)
	if want, got := p.Integrity, "sha512-"+base64.StdEncoding.EncodeToString(sum[:]); want != got {
		return fmt.Errorf("%s has the hash %s, the lock file says %s", from, got, want)
	}
	return unpack(archive, dir)
}

// get downloads a file.
func get(ctx context.Context, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Timeout: timeout}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", from, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxArchive))
}

// unpack writes the files of an archive, all of which lie in one directory in there.
func unpack(archive []byte, dir string) error {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // names in archives may lead anywhere
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a directory that was read
	for r := tar.NewReader(io.LimitReader(z, maxUnpacked)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || !ok {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm()|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
