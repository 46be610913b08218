package tidy

import (
	"go/ast"
	"go/token"
)

// isTable reports whether a function is one table: it returns a composite literal without
// functions of more than a line in it, or it is a switch whose cases are a line each.
func (t *tree) isTable(fn *ast.FuncDecl) bool {
	list := fn.Body.List
	if len(list) == 2 {
		if _, ok := list[1].(*ast.ReturnStmt); !ok || !t.oneLine(list[1]) {
			return false
		}
		switch s := list[0].(type) { // the value of what no case has follows it
		case *ast.SwitchStmt:
			return t.rows(s.Body)
		case *ast.TypeSwitchStmt:
			return t.rows(s.Body)
		}
		return false
	}
	if len(list) != 1 {
		return false
	}
	switch s := list[0].(type) {
	case *ast.ReturnStmt:
		return len(s.Results) == 1 && t.literal(s.Results[0])
	case *ast.SwitchStmt:
		return t.rows(s.Body)
	case *ast.TypeSwitchStmt:
		return t.rows(s.Body)
	}
	return false
}

// oneLine reports whether a node begins and ends on the same line.
func (t *tree) oneLine(n ast.Node) bool {
	return t.fset.Position(n.Pos()).Line == t.fset.Position(n.End()).Line
}

// rows reports whether all clauses of a switch have at most one statement, of one line.
func (t *tree) rows(body *ast.BlockStmt) bool {
	for _, clause := range body.List {
		c, ok := clause.(*ast.CaseClause)
		if !ok || len(c.Body) > 1 || len(c.Body) == 1 && !t.oneLine(c.Body[0]) {
			return false
		}
	}
	return true
}

// literal reports whether e is a composite literal, or its address, without code in it.
func (t *tree) literal(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	if _, ok := e.(*ast.CompositeLit); !ok {
		return false
	}
	table := true
	ast.Inspect(e, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncLit); ok && !t.oneLine(f) {
			table = false
		}
		return table
	})
	return table
}
