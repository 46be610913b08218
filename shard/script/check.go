package script

// CheckFunction compiles a source. The error is of kind CompilationError, or
// NotFound when there is no source; its reason has no name of a view in it:
// CouchDB puts "Compilation of the map function in the 'v' view failed: "
// before that of a CompilationError. Sources are evaluated, so no VM sees two of
// them.
func (e *Engine) CheckFunction(source string) error {
	s := functionSet{engine: e, kind: forChecks, closed: true, setUp: func(*vm) error { return nil }}
	v, err := s.acquire(nil)
	if err != nil {
		return err
	}
	defer s.release(v)
	v.begin(nil, e.o.Timeout())
	p, err := v.compile(source)
	if err != nil {
		return err
	}
	v.free(p.code)
	return nil
}
