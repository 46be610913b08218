// Package tidy holds the style rules of this repository as tests: which floor
// may import which, how long packages, files and functions may be, how many methods a
// type may have, that packages are documented, where goroutines may start.
//
// Rules with a number have a ratchet: testdata/ratchet.txt lists what was over
// the limit when the rule came, with its size. An entry may shrink or go, never
// grow, and the test fails when an entry is no longer needed.
package tidy

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// file is one parsed source file.
type file struct {
	path  string // from the root of the repository, with slashes
	ast   *ast.File
	lines int
}

// test reports whether it is a test file.
func (f *file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// dir is the folder of the file.
func (f *file) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// tree is the whole repository.
type tree struct {
	fset  *token.FileSet
	files []*file
}

// load parses every Go file below root that is not generated.
func load(root string) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules" || n == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		return t.add(root, path)
	})
	return t, err
}

func (t *tree) add(root, path string) error {
	parsed, err := parser.ParseFile(t.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", path, err)
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	t.files = append(t.files, &file{filepath.ToSlash(rel), parsed, t.fset.File(parsed.FileStart).LineCount()})
	return nil
}

// size is something that has a limit.
type size struct {
	rule  string // see limits
	where string
	n     int
}

// limits are the budgets per rule: lines of a package, file and function; exported names of a
// package, without methods; methods of a type, fields of a struct, methods of an interface,
// parameters of a function.
func limits() map[string]int {
	return map[string]int{
		"package": 8000, "exported": 120, "methods": 30, "file": 600, "func": 70, "struct": 20, "interface": 5, "params": 5,
	}
}

// sizes measures everything that has a limit. Test files are exempt from the
// limits on functions, packages and types, and so are functions that are one table: a table
// of cases is long and easy to read.
func (t *tree) sizes() []size {
	out := t.packageSizes()
	for _, f := range t.files {
		out = append(out, size{"file", f.path, f.lines})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				out = append(out, t.funcSizes(f, n)...)
			case *ast.TypeSpec:
				switch body := n.Type.(type) {
				case *ast.StructType:
					out = append(out, size{"struct", f.path + ":" + n.Name.Name, body.Fields.NumFields()})
				case *ast.InterfaceType:
					out = append(out, size{"interface", f.path + ":" + n.Name.Name, body.Methods.NumFields()})
				}
			}
			return true
		})
	}
	return out
}

func (t *tree) funcSizes(f *file, fn *ast.FuncDecl) []size {
	where := f.path + ":" + fn.Name.Name
	if fn.Recv != nil && len(fn.Recv.List) == 1 {
		where = f.path + ":" + receiver(fn.Recv.List[0].Type) + "." + fn.Name.Name
	}
	out := []size{{"params", where, fn.Type.Params.NumFields()}}
	if fn.Body != nil && !f.test() && !t.isTable(fn) {
		lines := t.fset.Position(fn.Body.Rbrace).Line - t.fset.Position(fn.Pos()).Line + 1
		out = append(out, size{"func", where, lines - t.commentLines(f, fn)})
	}
	return out
}

// commentLines counts the lines of fn that are only comment: they are free.
func (t *tree) commentLines(f *file, fn *ast.FuncDecl) int {
	n := 0
	for _, group := range f.ast.Comments {
		if group.Pos() > fn.Body.Lbrace && group.End() < fn.Body.Rbrace {
			first, last := t.fset.Position(group.Pos()), t.fset.Position(group.End())
			n += last.Line - first.Line
			if !t.codeBefore(fn, group, first) {
				n++
			}
		}
	}
	return n
}

// codeBefore reports whether a statement shares the comment's first line.
func (t *tree) codeBefore(fn *ast.FuncDecl, group *ast.CommentGroup, first token.Position) bool {
	found := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if n == nil || found {
			return false
		}
		if n.End() <= group.Pos() && t.fset.Position(n.End()).Line == first.Line {
			found = true
		}
		return true
	})
	return found || t.fset.Position(fn.Body.Lbrace).Line == first.Line
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// readRatchet returns the entries "rule where size" of a ratchet file.
func readRatchet(path string) (map[string]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	out := map[string]int{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: want three fields: %q", path, line)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out[fields[0]+" "+fields[1]] = n
	}
	return out, scan.Err()
}
