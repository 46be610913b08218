package script

import (
	"context"
	"slices"

	"go.uber.org/zap"
)

// Program is what an index runs over each document: its map functions, and the
// modules that they may require (views.lib, JSON; nil: none).
type Program struct {
	Maps []string
	Lib  []byte
}

// Mapper has the VMs of a program. It is safe for concurrent use.
type Mapper struct {
	set  functionSet
	read need // of documents, by all functions together
	pure bool // no function can change a document
}

// Mapper compiles a program. A function that does not compile is an error of
// kind CompilationError.
func (e *Engine) Mapper(p Program) (*Mapper, error) {
	m := &Mapper{pure: true}
	m.set = functionSet{engine: e, slots: e.indexes, setUp: func(v *vm) error { return v.setUpMaps(p) }}
	for _, source := range p.Maps {
		u := analyse(source)
		m.read = m.read.and(u.of(0))
		m.pure = m.pure && u.pure
	}
	v, err := m.set.acquire(nil)
	if err != nil {
		return nil, err
	}
	m.set.release(v)
	return m, nil
}

func (v *vm) setUpMaps(p Program) error {
	modules := []byte("null")
	if p.Lib != nil {
		modules = p.Lib
	}
	x, err := v.parse(slices.Concat([]byte(`{"views":{"lib":`), modules, []byte("}}")))
	if err != nil {
		return err
	}
	if isException(x) {
		return v.takeError()
	}
	defer v.free(x)
	if r := v.invoke("load", x); isException(r) {
		return v.takeError()
	}
	v.analysed = true
	for _, source := range p.Maps {
		f, expression, err := v.compileForm(source)
		if err != nil {
			return err
		}
		v.functions = append(v.functions, f)
		v.analysed = v.analysed && expression
	}
	return nil
}

// MapVM runs a program. It is for one goroutine at a time.
type MapVM struct {
	*vm
	mapper *Mapper
}

// Acquire returns a VM for the caller alone, who gives it back with Release.
// It waits until there is one.
func (m *Mapper) Acquire(ctx context.Context) (*MapVM, error) {
	v, err := m.set.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &MapVM{v, m}, nil
}

// Release takes a VM back.
func (m *Mapper) Release(vm *MapVM) { m.set.release(vm.vm) }

// Close closes the VMs of the program.
func (m *Mapper) Close() { m.set.close() }

// Map runs all functions of the program over the JSON text of a document. emit
// is called for each emitted row with the index of the function, and the key
// and the value as JSON text, which are valid until it returns. A function
// that throws has no rows of this document; what it threw is logged. An error
// means that the VM cannot go on: time or memory are over, or a function
// threw what CouchDB calls fatal.
func (vm *MapVM) Map(ctx context.Context, doc []byte, emit func(fn int, key, value []byte)) error {
	v := vm.vm
	if err := v.stopped(); err != nil {
		return err
	}
	v.begin(ctx, v.set.engine.o.Timeout())
	d := document{text: doc}
	defer func() { v.free(d.value) }()
	if err := vm.open(&d, !vm.mapper.read.all && v.analysed && v.object.untouched()); err != nil {
		return err
	}
	for i, f := range v.functions {
		if err := v.mapOne(f, d); err != nil {
			return err
		}
		if d.projected && !v.object.untouched() { // the function may have seen what is missing
			if err := vm.open(&d, false); err != nil {
				return err
			}
			if err := v.mapOne(f, d); err != nil {
				return err
			}
		}
		for _, row := range v.host.rows {
			emit(i, v.out[row.key:row.value], v.out[row.value:row.end])
		}
	}
	v.settle()
	return v.stopped()
}

// document is one that is being mapped.
type document struct {
	text      []byte
	value     value
	projected bool // value has only some members
}

// open makes the value of a document, read-only if need be.
func (vm *MapVM) open(d *document, projected bool) error {
	v := vm.vm
	v.free(d.value)
	d.value, d.projected = undefined(), false
	text := d.text
	if projected {
		if v.joined, d.projected = project(v.joined[:0], text, vm.mapper.read.names); d.projected {
			text = v.joined
		}
	}
	var err error
	if d.value, err = v.parse(text); err != nil {
		return err
	}
	if isException(d.value) {
		return v.takeError()
	}
	if vm.mapper.pure && v.analysed {
		return nil
	}
	return v.seal(d.value)
}

// mapOne leaves the rows of one function in host.rows and out.
func (v *vm) mapOne(f value, d document) error {
	v.host.rows, v.out = v.host.rows[:0], v.out[:0]
	r := v.call(f, undefined(), d.value)
	if !isException(r) && !v.host.overflow {
		v.free(r)
		return nil
	}
	v.host.rows = v.host.rows[:0]
	var t *thrown
	if isException(r) {
		if t = v.thrown(); t == nil {
			return v.stopped()
		}
	} else {
		v.free(r)
		t = &thrown{"error", "overflow", "output is too large"}
	}
	if err := t.fatal(); err != nil {
		return err
	}
	v.set.engine.o.Logger.Info("a map function raised an exception", zap.String("error", bounded(t.Error())),
		zap.String("document", documentID(d.text)))
	return nil
}

// takeError is the error of a pending exception that no script has thrown on
// purpose.
func (v *vm) takeError() error {
	if t := v.thrown(); t != nil {
		return t.fault()
	}
	return v.stopped()
}

// seal makes x and all that is in it read-only.
func (v *vm) seal(x value) error {
	r := v.invoke("seal", x)
	if isException(r) {
		return v.takeError()
	}
	v.free(r)
	return nil
}
