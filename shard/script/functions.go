package script

import (
	"slices"
)

// functions are those of an index: compiled once, and made anew for each use of the vm.
type functions struct {
	compiler *compiler
	sandbox  *sandbox
	realm    *realm
	programs []program
	made     []value    // of programs, for this use
	promises []promised // which those returned for a document
	analysed bool       // all have the form that analyse assumed
}

// load compiles the functions of a program, in a new VM.
func (f *functions) load(p Program) error {
	modules := []byte("null")
	if p.Lib != nil {
		modules = p.Lib
	}
	if err := f.sandbox.load(slices.Concat([]byte(`{"views":{"lib":`), modules, []byte("}}"))); err != nil {
		return err
	}
	f.analysed = true
	for _, source := range p.Maps {
		p, err := f.compiler.compile(source)
		if err != nil {
			return err
		}
		f.programs = append(f.programs, p)
		f.analysed = f.analysed && p.expression
	}
	return nil
}

// make makes the functions, once in each use of the vm.
func (f *functions) make() error {
	for i := len(f.made); i < len(f.programs); i++ {
		fn, err := f.compiler.function(&f.programs[i])
		if err != nil {
			return err
		}
		f.made = append(f.made, fn)
	}
	return nil
}

// drop ends a use.
func (f *functions) drop() {
	for _, fn := range f.made {
		f.realm.free(fn)
	}
	f.made = f.made[:0]
}

// close frees everything.
func (f *functions) close() {
	f.drop()
	for _, p := range f.programs {
		f.realm.free(p.code)
	}
}
