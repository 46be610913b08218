package script

import (
	"context"
	"errors"
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
	m.set = functionSet{engine: e, name: p.Instance, instance: p.Instance, kind: forIndexes, indexArguments: p.IndexArguments, setUp: func(v *vm) error { return v.functions.load(p) }}
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

// MapVM runs a program. It is for one goroutine at a time.
type MapVM struct {
	vm     *vm
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
func (m *MapVM) Fresh() bool { return m.vm.idleSince.IsZero() }

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
func (m *MapVM) Map(ctx context.Context, doc []byte, rows Rows) error {
	e := &m.vm.emitter
	e.rows = rows
	began, called := time.Now(), &m.mapper.set.engine.called
	defer func() {
		e.rows = nil
		called.maps.ended(began)
		called.emits.Add(e.emits)
		e.emits = 0
	}()
	return m.run(ctx, doc, rows)
}

// run runs all functions over a document.
func (m *MapVM) run(ctx caller, doc []byte, t taker) error {
	v := m.vm
	if err := v.limits.stopped(); err != nil {
		return err
	}
	v.begin(ctx, v.set.engine.o.Timeout())
	if v.limits.yield(v.limits.polled); v.limits.halted != nil {
		return v.limits.stopped()
	}
	v.emitter.taker = t
	defer func() { v.emitter.taker = nil }()
	if err := v.functions.make(); err != nil {
		return err
	}
	d := document{text: doc}
	defer func() {
		v.realm.free(d.value)
		v.returnAllowance()
	}()
	defer v.functions.dropPromises()
	if err := m.open(&d, !m.mapper.read.all && v.functions.analysed && v.encoder.object.untouched()); err != nil {
		return err
	}
	for i := range v.functions.made {
		if err := m.mapOne(i, &d); err != nil {
			return &FunctionError{i, err}
		}
	}
	return m.settle(doc)
}

// document is one that is being mapped.
type document struct {
	text      []byte
	value     value
	projected bool // value has only some members
}

// open makes the value of a document, read-only if need be.
func (m *MapVM) open(d *document, projected bool) error {
	v := m.vm
	v.realm.free(d.value)
	d.value, d.projected = undefined(), false
	text := d.text
	if projected {
		if v.joined, d.projected = project(v.joined[:0], text, m.mapper.read.names); d.projected {
			text = v.joined
		}
	}
	err := v.takeAllowance(text)
	if err != nil {
		return err
	}
	if d.value, err = v.realm.parse(text); err != nil {
		return err
	}
	if isException(d.value) {
		return v.exceptions.err()
	}
	if m.mapper.pure && v.functions.analysed {
		return nil
	}
	return v.sandbox.seal(d.value)
}

// mapOne runs one function, twice if it may have seen what is missing in a part of
// the document.
func (m *MapVM) mapOne(fn int, d *document) error {
	v := m.vm
	if err := m.mapOnce(fn, d); err != nil {
		return err
	}
	if !d.projected || v.encoder.object.untouched() {
		return nil
	}
	v.emitter.taker.Drop(fn)
	if err := m.open(d, false); err != nil {
		return err
	}
	return m.mapOnce(fn, d)
}

// mapOnce gives what one function emits, or has indexed, to the taker.
func (m *MapVM) mapOnce(fn int, d *document) error {
	v := m.vm
	v.encoder.cut(0)
	v.emitter.begin(fn)
	r := v.realm.call(v.functions.made[fn], undefined(), d.value)
	v.emitter.end()
	if !isException(r) {
		v.functions.returned(fn, r)
		return v.emitter.refused
	}
	v.emitter.taker.Drop(fn)
	t := v.exceptions.take()
	if t == nil {
		return v.limits.stopped()
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
