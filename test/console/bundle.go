package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// bundle makes the files of the console, by name: the page, scripts and styles with a hash of their
// content in their names, and the licenses of what is in them.
func bundle(modules, stage string) (map[string][]byte, error) {
	res := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: "src/main.tsx", OutputPath: "main"}},
		AbsWorkingDir:       stage,
		Bundle:              true,
		Format:              api.FormatESModule,
		Splitting:           true,
		MinifyWhitespace:    true,
		MinifyIdentifiers:   true,
		MinifySyntax:        true,
		Target:              api.ES2022,
		JSX:                 api.JSXAutomatic,
		JSXImportSource:     "preact",
		Outdir:              "out",
		EntryNames:          "[name]-[hash]",
		ChunkNames:          "[name]-[hash]",
		Metafile:            true,
		LogLevel:            api.LogLevelWarning,
	})
	if len(res.Errors) > 0 {
		return nil, fmt.Errorf("esbuild: %d errors", len(res.Errors))
	}
	made := map[string][]byte{}
	var refer []string
	for _, f := range res.OutputFiles {
		name := filepath.Base(f.Path)
		made[name] = f.Contents
		if kind, is := strings.CutPrefix(name, "main-"); is {
			refer = append(refer, "{{main"+path.Ext(kind)+"}}", name)
		}
	}
	page, err := os.ReadFile(filepath.Join(stage, "index.html"))
	if err != nil {
		return nil, err
	}
	page = []byte(strings.NewReplacer(refer...).Replace(string(page)))
	if bytes.Contains(page, []byte("{{")) {
		return nil, errors.New("index.html names a file that was not made")
	}
	made["index.html"] = page
	made["licenses.txt"], err = licenses(modules, res.Metafile)
	return made, err
}

// licenses returns the texts of the licenses of all packages that are part of the files.
func licenses(modules, metafile string) ([]byte, error) {
	var meta struct{ Inputs map[string]any }
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	of := regexp.MustCompile(`node_modules/((?:@[^/]+/)?[^/]+)/`)
	for input := range meta.Inputs {
		if m := of.FindStringSubmatch(input); m != nil {
			used[m[1]] = true
		}
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(used)) {
		dir := filepath.Join(modules, filepath.FromSlash(name))
		found, err := fs.Glob(os.DirFS(dir), "[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*")
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("package %s has no license", name)
		}
		text, err := os.ReadFile(filepath.Join(dir, found[0]))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\n\n%s\n\n", name, bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}

// stored returns the name and the content of a file in the tree: all but the page is compressed.
func stored(name string, content []byte) (string, []byte, error) {
	if name == "index.html" {
		return name, content, nil
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return "", nil, err
	}
	_, err = z.Write(content)
	err = errors.Join(err, z.Close())
	return name + ".gz", out.Bytes(), err
}

// write replaces the files in the tree.
func write(made map[string][]byte) error {
	if err := os.RemoveAll(assetsDir); err != nil {
		return err
	}
	if err := os.MkdirAll(assetsDir, 0o755); err != nil {
		return err
	}
	for name, content := range made {
		name, content, err := stored(name, content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(assetsDir, name), content, 0o644); err != nil { //nolint:gosec // not secret
			return err
		}
	}
	return nil
}

// compare fails when the files in the tree are not those that were made. How they are compressed
// does not count: another version of Go may do it in another way.
func compare(made map[string][]byte) error {
	entries, err := os.ReadDir(assetsDir)
	if err != nil {
		return err
	}
	const again = "the files in " + assetsDir + " are not those of the sources: run ./dev console"
	if len(entries) != len(made) {
		return errors.New(again)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(assetsDir, e.Name()))
		if err != nil {
			return err
		}
		name, compressed := strings.CutSuffix(e.Name(), ".gz")
		if compressed {
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return fmt.Errorf("%s: %w", e.Name(), err)
			}
			if text, err = io.ReadAll(z); err != nil {
				return fmt.Errorf("%s: %w", e.Name(), err)
			}
		}
		if !bytes.Equal(text, made[name]) {
			return errors.New(again)
		}
	}
	return nil
}

// report prints how large the files are, compressed as they are sent.
func report(made map[string][]byte) {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if _, content, err := stored(name, made[name]); err == nil {
			fmt.Printf("%8d  %s\n", len(content), name)
			total += len(content)
		}
	}
	fmt.Printf("%8d  bytes compressed\n", total)
}
