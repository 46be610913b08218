package script

import "context"

// CheckFunction compiles a source for an instance of a database, whose turns it takes, and
// ends with ctx. The error is of kind CompilationError, or NotFound when there is no
// source; its reason has no name of a view in it: CouchDB puts "Compilation of the map
// function in the 'v' view failed: " before that of a CompilationError. Sources are
// evaluated, so no VM sees two of them.
func (e *Engine) CheckFunction(ctx context.Context, instance, source string) error {
	s := functionSet{engine: e, instance: instance, kind: forChecks, closed: true, setUp: func(*vm) error { return nil }}
	v, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(v)
	v.begin(ctx, e.o.Timeout())
	p, err := v.compiler.compile(source)
	if err != nil {
		return err
	}
	v.realm.free(p.code)
	return nil
}
