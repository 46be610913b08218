package script

import (
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// Pure functions need no sealed document. What makes a function impure is
// found by names: only a few built-in functions change an object, and to call
// one it has to be named, as a member, or to be reached by a computed name. All
// code in the VM is looked at, so functions that scripts make themselves need
// no care.

// mutators are methods that change the array that they are called on.
func mutators(name string) bool {
	switch name {
	case "push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin":
		return true
	}
	return false
}

// changing are names of members with which objects can be changed, or code can
// get hold of functions that do.
func changing(name string) bool {
	switch name {
	case "call", "apply", "bind", "constructor", "prototype", "__proto__",
		"assign", "defineProperty", "defineProperties", "setPrototypeOf", "freeze", "seal", "preventExtensions",
		"__defineGetter__", "__defineSetter__", "deleteProperty", "isFrozen", "isSealed", "isExtensible":
		return true
	}
	return mutators(name)
}

// takesThis are functions with a parameter for the "this" of a function that
// they call.
func takesThis(name string) bool {
	switch name {
	case "forEach", "map", "filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "from":
		return true
	}
	return false
}

// harmless are members of Object that change nothing and tell nothing about
// whether an object is sealed.
func harmless(name string) bool {
	switch name {
	case "keys", "values", "entries", "fromEntries", "getOwnPropertyNames", "is", "hasOwn", "create", "groupBy":
		return true
	}
	return false
}

// isFresh reports whether e can only be an object that the function has made:
// a literal, or a variable that never is anything else.
func (a *analysis) isFresh(e ast.Expression) bool {
	if id, ok := e.(*ast.Identifier); ok {
		return a.fresh[id.Name.String()]
	}
	return literal(e)
}

func literal(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.ArrayLiteral, *ast.ObjectLiteral, *ast.RegExpLiteral:
		return true
	case *ast.NewExpression:
		id, ok := e.Callee.(*ast.Identifier)
		return ok && (id.Name == "Array" || id.Name == "Date" || id.Name == "Map" || id.Name == "Set")
	}
	return false
}

// freshNames are the names of variables that are declared below root and only
// ever hold literals. A name that is also used for anything else, in any scope,
// is not among them.
func freshNames(root ast.Statement) map[string]bool {
	f := freshness{good: map[string]bool{}, bad: map[string]bool{}}
	f.walk(reflect.ValueOf(root), false)
	for name := range f.bad {
		delete(f.good, name)
	}
	return f.good
}

type freshness struct{ good, bad map[string]bool }

// walk visits everything below v. target: identifiers are given values that
// are not known.
func (f *freshness) walk(v reflect.Value, target bool) {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.node(v, target)
		}
	case reflect.Struct:
		if id, ok := v.Interface().(ast.Identifier); ok {
			if target {
				f.bad[id.Name.String()] = true
			}
			return
		}
		for i := range v.NumField() {
			f.walk(v.Field(i), target)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]*ast.VariableDeclaration]() {
			return
		}
		for i := range v.Len() {
			f.walk(v.Index(i), target)
		}
	default:
	}
}

func (f *freshness) node(v reflect.Value, target bool) {
	switch n := v.Interface().(type) {
	case *ast.Binding: // of a variable: parameters come as part of their list
		if id, ok := n.Target.(*ast.Identifier); ok && !target {
			f.assigned(id, n.Initializer)
			f.walk(reflect.ValueOf(n.Initializer), false)
			return
		}
		f.walk(reflect.ValueOf(n.Target), true)
		f.walk(reflect.ValueOf(n.Initializer), false)
	case *ast.AssignExpression:
		if id, ok := n.Left.(*ast.Identifier); ok && n.Operator == token.ASSIGN {
			if !literal(n.Right) {
				f.bad[id.Name.String()] = true
			}
		} else if _, _, _, member := access(n.Left); !member {
			f.walk(reflect.ValueOf(n.Left), true)
		} else {
			f.walk(reflect.ValueOf(n.Left), false)
		}
		f.walk(reflect.ValueOf(n.Right), false)
	case *ast.ParameterList, *ast.CatchStatement, *ast.ForIntoVar, *ast.ForDeclaration:
		f.targets(v.Elem())
	case *ast.ForIntoExpression:
		f.walk(reflect.ValueOf(n.Expression), true)
	case *ast.FunctionLiteral:
		f.name(n.Name)
		f.walk(v.Elem(), false)
	case *ast.ClassLiteral:
		f.name(n.Name)
		f.walk(v.Elem(), false)
	default:
		f.walk(v.Elem(), target)
	}
}

// targets visits the parts of a node that binds names, its body excepted.
func (f *freshness) targets(v reflect.Value) {
	for i := range v.NumField() {
		_, isBody := v.Field(i).Interface().(*ast.BlockStatement)
		f.walk(v.Field(i), !isBody)
	}
}

func (f *freshness) name(id *ast.Identifier) {
	if id != nil {
		f.bad[id.Name.String()] = true
	}
}

// assigned notes the declaration of a variable.
func (f *freshness) assigned(id *ast.Identifier, to ast.Expression) {
	name := id.Name.String()
	if to == nil || literal(to) {
		f.good[name] = true
		return
	}
	f.bad[name] = true
}
