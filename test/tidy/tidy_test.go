package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func repository(t *testing.T) *tree {
	t.Helper()
	tr, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.files) < 10 {
		t.Fatalf("only %d files found: the root is wrong", len(tr.files))
	}
	return tr
}

// floor returns the floor of a package folder, -1 for none.
func floor(dir string) int {
	top, _, _ := strings.Cut(dir, "/")
	switch top {
	case "storage", ".":
		return 0
	case "shard":
		return 1
	case "cluster":
		return 2
	case "replicator", "reshard":
		return 3
	case "httpapi":
		return 4
	case "cmd":
		return 5
	case "test":
		return 6
	}
	return -1
}

// pure lists packages that do nothing but compute: no files, network or clock.
func pure() []string {
	return []string{
		"storage/doc", "storage/fault", "storage/collate", "storage/archive", "shard/ring", "shard/query", "shard/query/plan", "shard/query/text", "shard/search/analysis", "shard/search/syntax", "shard/view/reduce",
		"cluster/quorum", "cluster/sequence", "reshard/job", "reshard/placer",
	}
}

// above lists the packages that import the package of their parent folder. Others below
// storage and shard are imported by it.
func above() []string {
	return []string{"shard/find", "shard/index", "shard/search", "shard/search/indexer", "shard/view"}
}

func TestFloors(t *testing.T) {
	for _, f := range repository(t).files {
		from := floor(f.dir())
		if from < 0 {
			t.Errorf("%s: a folder without a floor", f.path)
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			inside, ok := strings.CutPrefix(imported, "divan/")
			if !ok {
				continue
			}
			to := floor(inside)
			sameFolder := strings.SplitN(inside, "/", 2)[0] == strings.SplitN(f.dir(), "/", 2)[0]
			if to > from || to == from && !sameFolder {
				t.Errorf("%s imports %s: floor %d may not see floor %d", f.path, imported, from, to)
			}
			if (from == 1 || from == 0) && sameFolder && !strings.Contains(inside, "/") && f.dir() != inside && !f.test() && !slices.Contains(above(), f.dir()) {
				t.Errorf("%s imports %s: a package below storage or shard may not import that of its parent folder", f.path, imported)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	banned := []string{"os", "net", "net/http", "time", "sync", "io/fs", "os/exec", "github.com/cockroachdb/pebble/v2", "go.uber.org/zap"}
	// Tables that are unpacked once and memory that is used again do not show
	// in what a package computes. What a pattern takes can only be measured. Times
	// of backups are values.
	except := map[string]string{"storage/archive": "time", "storage/collate": "sync", "shard/search/analysis": "sync", "shard/query": "time"}
	for _, f := range repository(t).files {
		if f.test() || !slices.Contains(pure(), f.dir()) {
			continue
		}
		for _, spec := range f.ast.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); slices.Contains(banned, name) && except[f.dir()] != name {
				t.Errorf("%s imports %s: %s is pure", f.path, name, f.dir())
			}
		}
	}
}

func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range repository(t).files {
		if !f.test() {
			documented[f.dir()] = documented[f.dir()] || f.ast.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func TestSizes(t *testing.T) {
	ratchet, err := readRatchet("testdata/ratchet.txt")
	if err != nil {
		t.Fatal(err)
	}
	limit, measured := limits(), map[string]int{}
	for _, s := range repository(t).sizes() {
		if s.n <= limit[s.rule] {
			continue
		}
		key := s.rule + " " + s.where
		measured[key] = max(measured[key], s.n)
	}
	for key, n := range measured {
		allowed, listed := ratchet[key]
		rule, _, _ := strings.Cut(key, " ")
		switch {
		case !listed:
			t.Errorf("%s is %d, the limit is %d", key, n, limit[rule])
		case n > allowed:
			t.Errorf("%s grew from %d to %d", key, allowed, n)
		case n < allowed && rule != "package": // the lines of a package move with every change
			t.Errorf("%s shrank from %d to %d: write that into testdata/ratchet.txt", key, allowed, n)
		}
	}
	for key := range ratchet {
		if _, ok := measured[key]; !ok {
			t.Errorf("%s is within the limit now: take it out of testdata/ratchet.txt", key)
		}
	}
}

// parsed is a tree of one file.
func parsed(t *testing.T, path, source string) *tree {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &tree{fset: fset, files: []*file{{path: path, ast: f}}}
}

func TestPackageSizes(t *testing.T) {
	const source = `package p
type T[K any] struct{}
func (t *T[K]) A() {}
func (t T[K]) b() {}
type U int
func (U) A() {}
func F() {}
func f() {}
const A, b = 1, 2
var ( C = 3; d = 4 )
`
	var got []string
	for _, s := range parsed(t, "x/p.go", source).packageSizes() {
		got = append(got, s.rule+" "+s.where+" "+strconv.Itoa(s.n))
	}
	slices.Sort(got)
	if want := []string{"exported x 5", "methods x:T 2", "methods x:U 1", "package x 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := parsed(t, "x/p_test.go", source).packageSizes(); len(got) > 0 {
		t.Errorf("a test file counts: %v", got)
	}
}

// TestTables: functions whose name begins with table are tables.
func TestTables(t *testing.T) {
	tr := parsed(t, "p.go", `package p
func tableLiteral() []int { return []int{
	1,
	2,
} }
func tableAddress() *T { return &T{a: func() int { return 1 }} }
func tableSwitch(x int) string {
	switch x {
	case 1:
		return "one"
	case 2, 3:
	default:
		return "many"
	}
	return ""
}
func tableTypes(x any) string {
	switch x.(type) {
	case int:
		return "int"
	}
	return ""
}
func empty() {}
func call() int { return g() }
func two() []int { x := 1; return []int{x} }
func code() *T { return &T{a: func() int {
	return 1
}} }
func long(x int) int {
	switch x {
	case 1:
		g()
		return 1
	}
	return 0
}
func lines(x int) int {
	switch x {
	case 1:
		return g(
			1)
	}
	return 0
}
func loop() int {
	for {
	}
	return 1
}
`)
	for _, decl := range tr.files[0].ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if want := ok && strings.HasPrefix(fn.Name.Name, "table"); ok && tr.isTable(fn) != want {
			t.Errorf("%s: want %v", fn.Name.Name, want)
		}
	}
}

// goroutineFiles returns the files that may start goroutines.
func goroutineFiles(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/goroutines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		name, who, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "" || name == "#":
		case who == "":
			t.Errorf("goroutines.txt: %s: who waits for them?", name)
		default:
			out = append(out, name)
		}
	}
	return out
}

// startsGoroutine reports whether n is a go statement, or a call of the method
// Go that groups have (sync.WaitGroup, errgroup.Group).
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

func TestGoroutinesStartInKnownFiles(t *testing.T) {
	known := goroutineFiles(t)
	found := map[string]bool{}
	for _, f := range repository(t).files {
		if f.test() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			found[f.path] = found[f.path] || startsGoroutine(n)
			return true
		})
	}
	for name, starts := range found {
		if starts && !slices.Contains(known, name) {
			t.Errorf("%s starts goroutines: say who waits for them in testdata/goroutines.txt", name)
		}
	}
	for _, name := range known {
		if !found[name] {
			t.Errorf("%s starts no goroutine any more: take it out of testdata/goroutines.txt", name)
		}
	}
}

func TestBannedCalls(t *testing.T) {
	for _, f := range repository(t).files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init", f.path)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			switch {
			case ok && isCall(call, "synctest", "Test") && f.test():
				return false // time in a bubble is no time
			case ok && isCall(call, "time", "Sleep"):
				t.Errorf("%s: time.Sleep (wait for what you wait for)", f.path)
			}
			return true
		})
		for _, group := range f.ast.Comments {
			for _, marker := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if strings.Contains(group.Text(), marker) {
					t.Errorf("%s: %s in a comment: finish it or write an issue", f.path, marker)
				}
			}
		}
	}
}

// isCall reports whether a call is of pkg.name.
func isCall(call *ast.CallExpr, pkg, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// Sentinels, tables and pools may be package variables: they are never
// assigned again.
func TestNoMutablePackageVariables(t *testing.T) {
	constant := []string{
		"errors.New", "fmt.Errorf", "regexp.MustCompile", "fault.New", "base64.", "hex.", "strings.NewReplacer",
		"crc32.MakeTable", "template.Must", "sync.OnceValue",
	}
	for _, f := range repository(t).files {
		if f.test() {
			continue
		}
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR || embedded(gen) {
				continue
			}
			for _, spec := range gen.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || v.Names[0].Name == "_" || v.Names[0].Name == linked {
					continue
				}
				if len(v.Values) == 0 || slices.ContainsFunc(v.Values, func(e ast.Expr) bool { return !isConstant(e, constant) }) {
					t.Errorf("%s: package variable %s (make it a field, a function or a constant)", f.path, v.Names[0].Name)
				}
			}
		}
	}
}

// linked is the variable that the linker sets (-X).
const linked = "linkedVersion"

// embedded reports whether the linker fills the variable with a file.
func embedded(gen *ast.GenDecl) bool {
	return gen.Doc != nil && slices.ContainsFunc(gen.Doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

func isConstant(e ast.Expr, calls []string) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			switch fun := e.Fun.(type) {
			case *ast.Ident: // a row of a table: the pointer that declare returns
				return fun.Name == "declare"
			case *ast.ArrayType: // []byte("…") that is never written to
				return true
			case *ast.FuncLit: // a table computed once
				arr, ok := fun.Type.Results.List[0].Type.(*ast.ArrayType)
				return ok && arr.Len != nil
			}
			return false
		}
		if inner, ok := sel.X.(*ast.SelectorExpr); ok { // base64.RawURLEncoding.WithPadding
			if pkg, ok := inner.X.(*ast.Ident); ok {
				return slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, pkg.Name+".") })
			}
		}
		pkg, ok := sel.X.(*ast.Ident)
		return ok && slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(pkg.Name+"."+sel.Sel.Name, c) })
	case *ast.CompositeLit: // lookup tables, header values that many answers share, pools
		if arr, ok := e.Type.(*ast.ArrayType); ok {
			elem, _ := arr.Elt.(*ast.Ident)
			return arr.Len != nil || elem != nil && elem.Name == "string"
		}
		sel, ok := e.Type.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Pool"
	case *ast.SelectorExpr:
		return true
	case *ast.UnaryExpr:
		return false
	}
	return false
}

// TestProse: comments name their subjects.
func TestProse(t *testing.T) {
	for _, place := range repository(t).prose() {
		t.Error(place, "stands for a noun, or for a verb: name the type or the role, and say what it does")
	}
}

func TestProseIsFound(t *testing.T) {
	source := "package p\n\n// Nobody waits.\n\n// T is what a client\n// sends.\ntype T int // nil: whoever asks\n\n// A nobodyElse is isolated, whatsoever.\n"
	found := parsed(t, "p.go", source).prose()
	if want := []string{`p.go:3: "Nobody"`, `p.go:5: "is what"`, `p.go:7: "whoever"`}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

// TestPackagesAreInArchitecture: a newcomer finds each package in docs/architecture.md.
func TestPackagesAreInArchitecture(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range repository(t).files {
		if dir := f.dir(); floor(dir) >= 0 && !seen[dir] && !strings.Contains(string(text), "`"+dir+"`") {
			t.Errorf("%s is missing", dir)
			seen[dir] = true
		}
	}
}
