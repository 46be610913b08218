package script

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
)

// need tells which parts of an argument a function reads: certain members, or
// everything.
type need struct {
	all   bool
	names []string
}

// and returns the union of n and other.
func (n need) and(other need) need {
	if n.all || other.all {
		return need{all: true}
	}
	for _, name := range other.names {
		if !slices.Contains(n.names, name) {
			n.names = append(n.names, name)
		}
	}
	return n
}

// usage is the result of analysing a function without running it. Anything in
// doubt counts as the worst.
type usage struct {
	params []need // by position
	rest   bool   // there is a rest parameter behind them
	// pure: nothing in the source can change an object that it has not made
	// itself, if no other function of the VM can.
	pure bool
}

// of returns the need of argument i.
func (u *usage) of(i int) need {
	if i < len(u.params) {
		return u.params[i]
	}
	return need{all: u.rest}
}

const (
	maxAnalysed = 32 << 10 // bytes of a source that is looked at
	maxNesting  = 200      // brackets within brackets
)

// analyse looks at the source of a function. Soundness of what it says about
// parameters: a parameter that is an identifier can only be reached through
// that identifier, through arguments, and by code that is evaluated in its
// scope (eval, with). So the parameter is only read by names if each occurrence
// of the identifier, in any scope and role, is the object of a member
// expression with a constant name, and the member is not called, which would
// give the object away as "this". Prototypes with getters are the only other
// way to the object. Sources with a name that leads to prototypes count as the
// worst; those that get there by computed names are found when they have done
// it: Map looks at the prototype of objects, and runs the function again.
func analyse(source string) *usage {
	worst := &usage{rest: true}
	if len(source) > maxAnalysed || nesting(source) > maxNesting || strings.Contains(source, "<!--") || strings.Contains(source, "-->") {
		return worst
	}
	program, err := parser.ParseFile(nil, "", "0,"+source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return worst
	}
	a := analysis{params: map[string]int{}, usage: &usage{pure: true}}
	if !a.function(program.Body) || a.failed {
		return worst
	}
	return a.usage
}

// nesting is an upper bound of how deep brackets are nested: the parser is
// recursive.
func nesting(source string) int {
	deepest, depth := 0, 0
	for i := range len(source) {
		switch source[i] {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// analysis walks over a function.
type analysis struct {
	*usage
	params map[string]int // position by name
	fresh  map[string]bool
	failed bool
}

// function takes a program "0,function…" apart; false when it is something else.
func (a *analysis) function(body []ast.Statement) bool {
	if len(body) == 0 {
		return false
	}
	for _, s := range body[1:] {
		if _, empty := s.(*ast.EmptyStatement); !empty {
			return false
		}
	}
	statement, ok := body[0].(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	sequence, ok := statement.Expression.(*ast.SequenceExpression)
	if !ok || len(sequence.Sequence) != 2 {
		return false
	}
	var list *ast.ParameterList
	var code any
	switch f := sequence.Sequence[1].(type) {
	case *ast.FunctionLiteral:
		list, code = f.ParameterList, f.Body
		if f.Name != nil {
			defer a.bare(f.Name.Name.String())
		}
	case *ast.ArrowFunctionLiteral:
		list, code = f.ParameterList, f.Body
	default:
		return false
	}
	a.parameters(list)
	a.fresh = freshNames(statement)
	a.walk(reflect.ValueOf(list.Rest))
	for _, b := range list.List {
		if _, plain := b.Target.(*ast.Identifier); !plain {
			a.walk(reflect.ValueOf(b.Target))
		}
		a.walk(reflect.ValueOf(b.Initializer))
	}
	a.walk(reflect.ValueOf(code))
	return true
}

// parameters gives names to positions.
func (a *analysis) parameters(list *ast.ParameterList) {
	a.rest = list.Rest != nil
	a.usage.params = make([]need, len(list.List))
	for i, b := range list.List {
		if b.Initializer != nil {
			a.usage.params[i].all = true
		}
		switch target := b.Target.(type) {
		case *ast.Identifier:
			name := target.Name.String()
			if first, twice := a.params[name]; twice {
				a.usage.params[first].all, a.usage.params[i].all = true, true
			}
			a.params[name] = i
		case *ast.ObjectPattern:
			a.pattern(i, target)
		default:
			a.usage.params[i].all = true
		}
	}
}

// pattern notes the members that a destructuring pattern takes of parameter i.
func (a *analysis) pattern(i int, p *ast.ObjectPattern) {
	if p.Rest != nil {
		a.usage.params[i].all = true
	}
	for _, property := range p.Properties {
		switch property := property.(type) {
		case *ast.PropertyShort:
			a.member(i, property.Name.Name.String())
		case *ast.PropertyKeyed:
			if key, ok := property.Key.(*ast.StringLiteral); ok && !property.Computed {
				a.member(i, key.Value.String())
				continue
			}
			a.usage.params[i].all = true
		default:
			a.usage.params[i].all = true
		}
	}
}

// inherited are members that every object has: scripts could make getters of
// them without adding any.
func inherited(name string) bool {
	switch name {
	case "constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable":
		return true
	}
	return strings.HasPrefix(name, "__")
}

// member notes that a member of parameter i is read.
func (a *analysis) member(i int, name string) {
	n := &a.usage.params[i]
	if inherited(name) || strings.ContainsRune(name, utf8.RuneError) {
		n.all = true
	}
	if !slices.Contains(n.names, name) {
		n.names = append(n.names, name)
	}
}

// bare notes an identifier in a role that gives its value away.
func (a *analysis) bare(name string) {
	switch name {
	case "arguments", "eval", "Function", "Reflect":
		a.failed = true
	case "globalThis", "require", "Object":
		a.pure = false
	}
	if i, ok := a.params[name]; ok {
		a.usage.params[i].all = true
	}
}

// parameter is the position of the parameter that e names.
func (a *analysis) parameter(e ast.Expression) (int, bool) {
	if o, ok := e.(*ast.Optional); ok {
		e = o.Expression
	}
	id, ok := e.(*ast.Identifier)
	if !ok {
		return 0, false
	}
	i, ok := a.params[id.Name.String()]
	return i, ok
}

// access takes a member expression apart: its object, and its name if that is
// constant.
func access(e ast.Expression) (object ast.Expression, name string, constant, ok bool) {
	for {
		switch x := e.(type) {
		case *ast.Optional:
			e = x.Expression
		case *ast.OptionalChain:
			e = x.Expression
		case *ast.DotExpression:
			return x.Left, x.Identifier.Name.String(), true, true
		case *ast.BracketExpression:
			if s, isString := x.Member.(*ast.StringLiteral); isString {
				return x.Left, s.Value.String(), true, true
			}
			return x.Left, "", false, true
		default:
			return nil, "", false, false
		}
	}
}

// walk visits everything below v, by reflection: no kind of node is forgotten.
func (a *analysis) walk(v reflect.Value) {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || a.failed {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !a.node(v.Interface()) {
			a.walk(v.Elem())
		}
	case reflect.Struct:
		if id, ok := v.Interface().(ast.Identifier); ok {
			a.bare(id.Name.String())
			return
		}
		for i := range v.NumField() {
			a.walk(v.Field(i))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]*ast.VariableDeclaration]() {
			return // the statements have them too
		}
		for i := range v.Len() {
			a.walk(v.Index(i))
		}
	default: // positions, texts
	}
}

func (a *analysis) children(of ...any) {
	for _, n := range of {
		a.walk(reflect.ValueOf(n))
	}
}

// node visits nodes that mean something; false for all others.
func (a *analysis) node(n any) bool {
	switch n := n.(type) {
	case *ast.BadExpression, *ast.BadStatement, *ast.WithStatement:
		a.failed = true
	case *ast.ThisExpression:
		a.pure = false
	case *ast.DotExpression:
		a.read(n.Left, n.Identifier.Name.String())
	case *ast.PrivateDotExpression:
		a.pure = false
		a.children(n.Left)
	case *ast.BracketExpression:
		if s, ok := n.Member.(*ast.StringLiteral); ok {
			a.read(n.Left, s.Value.String())
			return true
		}
		return false
	case *ast.MetaProperty:
	case *ast.Binding:
		return a.binding(n)
	case *ast.CallExpression:
		a.call(n.Callee)
		a.children(n.ArgumentList)
		if _, name, _, member := access(n.Callee); member && len(n.ArgumentList) > 1 && takesThis(name) {
			a.pure = false
		}
	case *ast.TemplateLiteral:
		if n.Tag != nil {
			a.call(n.Tag)
		}
		a.children(n.Expressions)
	case *ast.PropertyShort:
		a.key(n.Name.Name.String())
		return false
	case *ast.PropertyKeyed:
		if key, ok := n.Key.(*ast.StringLiteral); ok {
			a.key(key.Value.String())
		}
		a.pure = a.pure && !n.Computed
		return false
	case *ast.AssignExpression:
		a.changes(n.Left)
		return false
	case *ast.UnaryExpression:
		if n.Operator == token.DELETE || n.Operator == token.INCREMENT || n.Operator == token.DECREMENT {
			a.changes(n.Operand)
		}
		return false
	case *ast.ForIntoExpression:
		a.changes(n.Expression)
		return false
	default:
		return false
	}
	return true
}

// binding is "const {a, b} = doc": it reads members.
func (a *analysis) binding(b *ast.Binding) bool {
	p, isPattern := b.Target.(*ast.ObjectPattern)
	i, isParameter := a.parameter(b.Initializer)
	if !isPattern || !isParameter {
		return false
	}
	a.pattern(i, p)
	a.children(p)
	return true
}

// read is object.name, neither called nor written.
func (a *analysis) read(object ast.Expression, name string) {
	a.failed = a.failed || revealing(name)
	if i, ok := a.parameter(object); ok {
		a.member(i, name)
	} else if id, ok := object.(*ast.Identifier); ok && id.Name == "Object" && harmless(name) {
		return
	} else {
		a.children(object)
	}
	if changing(name) {
		a.pure = false
	}
}

// key is a name in a literal, or in a pattern, which reads it.
func (a *analysis) key(name string) {
	a.failed = a.failed || revealing(name)
	a.pure = a.pure && !changing(name)
}

// revealing are names of members that are other ways to the arguments of a
// function, or ways to what objects inherit.
func revealing(name string) bool {
	switch name {
	case "arguments", "caller", "callee",
		"prototype", "__proto__", "constructor", "getPrototypeOf", "setPrototypeOf",
		"defineProperty", "defineProperties", "__defineGetter__":
		return true
	}
	return false
}

// call is a call of callee.
func (a *analysis) call(callee ast.Expression) {
	object, name, constant, ok := access(callee)
	if !ok {
		a.children(callee)
		return
	}
	if i, isParameter := a.parameter(object); isParameter {
		a.usage.params[i].all = true // it is "this"
	}
	if !constant {
		a.pure = false
	}
	if constant && mutators(name) && a.isFresh(object) {
		a.children(object)
		return
	}
	a.children(callee)
}

// changes is a write to e, or to a member of an object.
func (a *analysis) changes(e ast.Expression) {
	switch e.(type) {
	case *ast.Identifier:
		return
	case *ast.ArrayPattern, *ast.ObjectPattern:
		a.pure = false
		return
	}
	object, name, constant, ok := access(e)
	if !ok || !a.isFresh(object) || constant && name == "__proto__" {
		a.pure = false
	}
}
