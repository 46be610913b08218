package tidy

import "go/ast"

// packageSizes counts the lines, the exported names and the methods of the types of each
// package, without its tests.
func (t *tree) packageSizes() []size {
	type key struct{ rule, where string }
	counts := map[key]int{}
	for _, f := range t.files {
		if f.test() {
			continue
		}
		counts[key{"package", f.dir()}] += f.lines
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				counts[key{"exported", f.dir()}] += exportedNames(decl)
			case *ast.FuncDecl:
				switch {
				case decl.Recv != nil:
					counts[key{"methods", f.dir() + ":" + receiver(decl.Recv.List[0].Type)}]++
				case decl.Name.IsExported():
					counts[key{"exported", f.dir()}]++
				}
			}
		}
	}
	var out []size
	for k, n := range counts {
		out = append(out, size{k.rule, k.where, n})
	}
	return out
}

// exportedNames counts the exported types, variables and constants of a declaration.
func exportedNames(decl *ast.GenDecl) (n int) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				n++
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}
