package script

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	lib "modernc.org/libquickjs"

	"divan/storage/doc"
	"divan/storage/fault"
)

// Design has the functions of one revision of a design document. It is safe for
// concurrent use, and needs no closing: VMs that are not in use go by
// themselves.
type Design struct {
	set  functionSet
	ddoc []byte
}

// Design returns the functions of a design document, given as JSON text. instance
// names the database, and no other one that had or will have its name: handles of
// the same text in the same instance share VMs. Nothing is compiled before it is
// called.
func (e *Engine) Design(instance string, ddoc []byte) *Design {
	d := &Design{ddoc: ddoc}
	name := instance + " " + documentID(ddoc)
	d.set = functionSet{engine: e, key: keyOf(instance, []byte("design"), ddoc), name: name, instance: instance, kind: forFunctions, setUp: d.setUp}
	return d
}

// Close closes the VMs of the design document that are not in use. The Design
// may go on being used.
func (d *Design) Close() { d.set.engine.dropIdle(d.set.owns) }

// setUp gives the document to the sandbox of a new vm.
func (d *Design) setUp(v *vm) error { return v.sandbox.load(d.ddoc) }

// Speaks reports whether a language, as design documents name it, is that of this package:
// the names of languages have no case.
func Speaks(language string) bool { return strings.EqualFold(language, "javascript") }

// source finds the source of a function by its path. A language that does not run here
// is refused by its name. Documents of Mango have functions in JavaScript.
func (d *Design) source(path ...string) (string, error) {
	if language, ok := doc.Unquote(doc.Lookup(d.ddoc, "language")); ok && !Speaks(language) && language != "query" {
		return "", &fault.Error{Kind: fault.BadFunction, Code: "unknown_query_language", Reason: language}
	}
	at := d.ddoc
	for _, name := range path {
		if at = doc.Lookup(at, name); at == nil {
			return "", fault.New(fault.NotFound, "missing json key: "+name)
		}
	}
	source, ok := doc.Unquote(at)
	if !ok {
		return "", &fault.Error{
			Kind: fault.BadFunction, Code: "compilation_error",
			Reason: "Expression does not eval to a function. (" + string(at) + ")",
		}
	}
	return source, nil
}

// function returns a new function of the document, whose source is compiled once
// per VM.
func (d *Design) function(v *vm, path ...string) (value, error) {
	name := strings.Join(path, "\x00")
	if p, ok := v.compiler.kept[name]; ok {
		return v.compiler.function(&p)
	}
	source, err := d.source(path...)
	if err != nil {
		return exceptionValue(), err
	}
	p, err := v.compiler.compile(source)
	if fault.Is(err, fault.CompilationError) {
		err = &fault.Error{Kind: fault.BadFunction, Code: "compilation_error", Reason: fault.Reason(err)}
	}
	if err != nil {
		return exceptionValue(), err
	}
	v.compiler.keep(name, p)
	return v.compiler.function(&p)
}

// run calls a runner of the sandbox with a function of the document and
// arguments in JSON (nil: null), and hands what it returns to take.
func (d *Design) run(ctx context.Context, runner string, path []string, args [][]byte, take func(*vm, value) error) error {
	k := d.set.kind
	if path[0] == validateFunction {
		k = forValidations
	}
	v, err := d.set.acquireFor(ctx, k)
	if err != nil {
		return err
	}
	defer d.set.release(v)
	v.begin(ctx, d.set.engine.o.Timeout())
	f, err := d.function(v, path...)
	if err != nil {
		return err
	}
	defer v.realm.free(f)
	defer d.set.engine.called.ended(runner, time.Now())
	return v.runWith(runner, f, args, take)
}

// runWith is run with a function that was made.
func (v *vm) runWith(runner string, f value, texts [][]byte, take func(*vm, value) error) error {
	args := make([]value, 1, 1+len(texts))
	args[0] = f
	defer func() {
		for _, a := range args[1:] {
			v.realm.free(a)
		}
	}()
	if v.list == nil { // which waits for a client while it has what it has
		if err := v.takeAllowance(texts...); err != nil {
			return err
		}
	}
	for _, text := range texts {
		x := null()
		if text != nil {
			var err error
			if x, err = v.realm.parse(text); err != nil {
				return err
			}
		}
		if isException(x) {
			return v.exceptions.err()
		}
		args = append(args, x)
	}
	r := v.sandbox.invoke(runner, args...)
	if isException(r) {
		return v.exceptions.err()
	}
	defer v.realm.free(r)
	if v.limits.halted != nil { // and the script has caught what that looked like
		return v.limits.stopped()
	}
	return take(v, r)
}

// json is the text of x, in memory of its own.
func (v *vm) json(x value) ([]byte, error) {
	text, ok := v.encoder.json(x)
	if !ok {
		return nil, v.exceptions.err()
	}
	return text, nil
}

// nothing is for runners whose result does not matter.
func nothing(*vm, value) error { return nil }

// Filter asks a filter function about documents, in JSON; req is the request
// object.
func (d *Design) Filter(ctx context.Context, name string, docs [][]byte, req []byte) ([]bool, error) {
	return d.filter(ctx, "runFilter", []string{"filters", name}, docs, req)
}

// FilterView asks whether the map function of a view emits anything for each
// of the documents.
func (d *Design) FilterView(ctx context.Context, view string, docs [][]byte) ([]bool, error) {
	return d.filter(ctx, "runFilterView", []string{"views", view, "map"}, docs, nil)
}

func (d *Design) filter(ctx context.Context, runner string, path []string, docs [][]byte, req []byte) ([]bool, error) {
	var passed []bool
	err := d.run(ctx, runner, path, [][]byte{appendArray(nil, docs), req}, func(v *vm, r value) error {
		text, err := v.json(r)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &passed)
	})
	if err == nil && len(passed) != len(docs) {
		return nil, fault.New(fault.BadFunction, "the filter has lost its documents")
	}
	return passed, err
}

// appendArray appends a JSON array of texts.
func appendArray(dst []byte, texts [][]byte) []byte {
	dst = append(dst, '[')
	for i, t := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, t...)
	}
	return append(dst, ']')
}

// validateFunction is the member of a design document that judges writes.
const validateFunction = "validate_doc_update"

// Validate runs validate_doc_update. oldDoc is nil for a new document. It
// returns an error of kind Forbidden or Unauthorized with the reason that the
// function gives, BadFunction for anything else it throws, and nil when the
// document may be written or there is no such function.
func (d *Design) Validate(ctx context.Context, newDoc, oldDoc, userCtx, secObj []byte) error {
	args := [][]byte{newDoc, oldDoc, userCtx, secObj}
	err := d.run(ctx, "runValidate", []string{validateFunction}, args, func(v *vm, r value) error {
		if !isObject(r) {
			return nil
		}
		text, err := v.json(r)
		if err != nil {
			return err
		}
		var refusal [2]string
		if err := json.Unmarshal(text, &refusal); err != nil {
			return err
		}
		return (&thrown{"error", refusal[0], refusal[1]}).fault()
	})
	d.set.engine.called.refused(ctx, err)
	return err
}

// Show runs a show function and returns its response object. doc is nil when
// there is none.
func (d *Design) Show(ctx context.Context, name string, doc, req []byte) (resp []byte, err error) {
	err = d.run(ctx, "runShow", []string{"shows", name}, [][]byte{doc, req}, func(v *vm, r value) error {
		resp, err = v.json(r)
		return err
	})
	return resp, err
}

// Update runs an update function and returns the document that it wants
// written (nil: none) and its response object. doc is nil when there is none.
func (d *Design) Update(ctx context.Context, name string, doc, req []byte) (newDoc, resp []byte, err error) {
	err = d.run(ctx, "runUpdate", []string{"updates", name}, [][]byte{doc, req}, func(v *vm, r value) error {
		for i, to := range []*[]byte{&newDoc, &resp} {
			x := v.realm.element(r, uint32(i))
			*to, err = v.json(x)
			v.realm.free(x)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if string(newDoc) == "null" {
		newDoc = nil
	}
	return newDoc, resp, err
}

// Rewrite runs the function in "rewrites" and returns what it returns, in
// JSON: a path alone becomes {"path":…,"method":…} with the method of the
// request. It is nil when the function returns nothing.
func (d *Design) Rewrite(ctx context.Context, req []byte) (resp []byte, err error) {
	err = d.run(ctx, "runRewrite", []string{"rewrites"}, [][]byte{req}, func(v *vm, r value) error {
		if int32(r.Ftag) == lib.EJS_TAG_NULL {
			return nil
		}
		resp, err = v.json(r)
		return err
	})
	return resp, err
}
