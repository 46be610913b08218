package script

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// Program is the code that an index runs over each document: its functions, and
// the modules that they may require (views.lib, JSON; nil: none).
type Program struct {
	Instance string // the database whose functions these are, and no other of its name; for the log
	Maps     []string
	Lib      []byte
	// IndexArguments is how many arguments index() has before its options. 0: these are
	// map functions, which emit; all others are run by Index, and have index() instead.
	IndexArguments int
}

// Mapper has the VMs of a program. It is safe for concurrent use.
type Mapper struct {
	set  functionSet
	read need // of documents, by all functions together
	pure bool // no function can change a document
}

// Mapper compiles a program. A function that does not compile is an error of
// kind CompilationError.
func (e *Engine) Mapper(ctx context.Context, p Program) (*Mapper, error) {
	m := &Mapper{pure: true}
	m.set = functionSet{engine: e, name: p.Instance, instance: p.Instance, kind: forIndexes, indexArguments: p.IndexArguments, setUp: func(v *vm) error { return v.setUpMaps(p) }}
	for _, source := range p.Maps {
		u := analyse(source)
		m.read = m.read.and(u.of(0))
		m.pure = m.pure && u.pure
	}
	v, err := m.set.acquire(ctx)
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
		p, err := v.compile(source)
		if err != nil {
			return err
		}
		v.programs = append(v.programs, p)
		v.analysed = v.analysed && p.expression
	}
	return nil
}

// makeFunctions makes the functions of an index, once in each use of the vm.
func (v *vm) makeFunctions() error {
	for i := len(v.functions); i < len(v.programs); i++ {
		f, err := v.function(&v.programs[i])
		if err != nil {
			return err
		}
		v.functions = append(v.functions, f)
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

// Rows takes what map functions emit of a document.
type Rows interface {
	// Emit takes a row of a function. Key and value are JSON texts, valid until it
	// returns. After an error the function runs on to its end or to that of its time,
	// and its rows are dropped: then Map returns the error, unless the function took
	// too long, as one does that emits without an end.
	Emit(fn int, key, value []byte) error
	// Drop takes back what a function has emitted of this document.
	Drop(fn int)
}

// FunctionError says which function of a program could not go on.
type FunctionError struct {
	Function int
	Err      error
}

// Error implements error.
func (e *FunctionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FunctionError) Unwrap() error { return e.Err }

// Fresh reports whether nothing has run in the VM before it was acquired.
func (vm *MapVM) Fresh() bool { return vm.idleSince.IsZero() }

// OfDocument reports whether an error of Map or Index is the fault of the document: it
// needs more than a document may need, and an index goes on without it. The other
// errors are those of a request, as CouchDB has it: the time of a function is over, or
// it threw what is fatal; and those of the node.
func OfDocument(err error) bool {
	return fault.Is(err, fault.BadFunction) && !errors.Is(err, errDeadline) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errFatal)
}

// OutOfMemory reports whether an error says that a VM had no memory left.
func OutOfMemory(err error) bool { return errors.Is(err, errOutOfMemory) }

// Map runs all functions of the program over the JSON text of a document. A
// function that throws has no rows of this document; what it threw is logged. An
// error means that the document cannot be mapped, and that the VM cannot go on:
// time, memory or the stack are over, there are too many rows, or a function threw
// what CouchDB calls fatal. It is a FunctionError once a function was called.
func (vm *MapVM) Map(ctx context.Context, doc []byte, rows Rows) error {
	vm.host.rows = rows
	began, called := time.Now(), &vm.set.engine.called
	defer func() {
		vm.host.rows = nil
		called.maps.ended(began)
		called.emits.Add(vm.host.emits)
		vm.host.emits = 0
	}()
	return vm.run(ctx, doc, rows)
}

// taker takes what functions give of a document: Rows or Calls.
type taker interface{ Drop(fn int) }

// run runs all functions over a document.
func (vm *MapVM) run(ctx caller, doc []byte, t taker) error {
	v := vm.vm
	if err := v.stopped(); err != nil {
		return err
	}
	v.begin(ctx, v.set.engine.o.Timeout())
	if v.yield(v.polled); v.halted != nil {
		return v.stopped()
	}
	v.host.taker = t
	defer func() { v.host.taker = nil }()
	if err := v.makeFunctions(); err != nil {
		return err
	}
	d := document{text: doc}
	defer func() {
		v.free(d.value)
		v.leaveRoom()
	}()
	defer v.dropPromises()
	if err := vm.open(&d, !vm.mapper.read.all && v.analysed && v.object.untouched()); err != nil {
		return err
	}
	for i := range v.functions {
		if err := vm.mapOne(i, &d); err != nil {
			return &FunctionError{i, err}
		}
	}
	return v.settleMaps(doc)
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
	err := v.makeRoom(text)
	if err != nil {
		return err
	}
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

// mapOne runs one function, twice if it may have seen what is missing in a part of
// the document.
func (vm *MapVM) mapOne(fn int, d *document) error {
	v := vm.vm
	if err := v.mapOnce(fn, d); err != nil {
		return err
	}
	if !d.projected || v.object.untouched() {
		return nil
	}
	v.host.taker.Drop(fn)
	if err := vm.open(d, false); err != nil {
		return err
	}
	return v.mapOnce(fn, d)
}

// mapOnce gives what one function emits, or has indexed, to host.taker.
func (v *vm) mapOnce(fn int, d *document) error {
	v.out = v.out[:0]
	v.host.fn, v.host.emit, v.host.refused = fn, emitRows, nil
	r := v.call(v.functions[fn], undefined(), d.value)
	v.host.emit = emitNothing
	if !isException(r) {
		v.returned(fn, r)
		return v.host.refused
	}
	v.host.taker.Drop(fn)
	t := v.thrown()
	if t == nil {
		return v.stopped()
	}
	if err := t.fatal(); err != nil {
		return err
	}
	v.set.engine.o.Logger.Info(v.set.what()+" raised an exception", zap.String("error", bounded(t.Error())),
		zap.String("document", documentID(d.text)))
	return nil
}

// what is the kind of the functions of an index, for the log.
func (s *functionSet) what() string {
	if s.indexArguments > 0 {
		return "an index function"
	}
	return "a map function"
}

// errRowTooLarge is that of a row whose text goes beyond what a VM may write.
func (v *vm) errRowTooLarge() error {
	return &fault.Error{Kind: fault.BadFunction, Code: "too_large", Reason: "The script emits a row of more than " + strconv.FormatInt(int64(v.host.outLimit)>>20, 10) + " MB."}
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
