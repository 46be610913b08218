package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"divan/httpapi/core"
)

// assets are the files that test/console makes of web/: index.html as it is, all else
// compressed.
//
//go:embed assets
var assets embed.FS

// file is one file of the console.
type file struct {
	contentType string
	etag        string
	body        []byte // all but pages: compressed with gzip
}

// plain returns the content of a compressed file.
func (f *file) plain() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(f.body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r) // it is part of the program, and small
}

// files are the files of the console.
type files struct {
	index, indexWithoutAdmins file
	byName                    map[string]*file
}

func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// load reads the files that are part of the program.
func load() (*files, error) {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	f := &files{byName: make(map[string]*file, len(entries))}
	for _, e := range entries {
		body, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		name, compressed := strings.CutSuffix(e.Name(), ".gz")
		switch {
		case name == "index.html" && !compressed:
			// The page tells scripts that there is no administrator: without an account a
			// script cannot ask for that.
			without := bytes.Replace(body, []byte("<html "), []byte(`<html data-admins="none" `), 1)
			f.index, f.indexWithoutAdmins = page(body), page(without)
		case compressed:
			f.byName[name] = &file{contentTypeOf(name), core.HashOf(body), body}
		default:
			return nil, fmt.Errorf("console: %s is not compressed", name)
		}
	}
	if f.index.body == nil {
		return nil, errors.New("console: there is no index.html")
	}
	return f, nil
}

func page(body []byte) file { return file{etag: core.HashOf(body), body: body} }
