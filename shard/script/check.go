package script

// Kind is what a function is for.
type Kind int

// The kinds of functions whose sources are checked.
const (
	KindMap Kind = iota + 1
	KindReduce
	KindFilter
	KindValidate
	KindShow
	KindList
	KindUpdate
	KindRewrite
)

// String is the word for the kind in CouchDB's texts.
func (k Kind) String() string {
	return [...]string{"", "map", "reduce", "filter", "validate_doc_update", "show", "list", "update", "rewrite"}[k]
}

// CheckFunction compiles a source. The error is of kind CompilationError, or
// NotFound when there is no source; its reason has no name of a view in it:
// CouchDB puts "Compilation of the map function in the 'v' view failed: "
// before that of a CompilationError. Sources are evaluated, so no VM sees two of
// them.
func (e *Engine) CheckFunction(_ Kind, source string) error {
	s := functionSet{engine: e, slots: e.checks, closed: true, setUp: func(*vm) error { return nil }}
	v, err := s.acquire(nil)
	if err != nil {
		return err
	}
	defer s.release(v)
	v.begin(nil, e.o.Timeout())
	f, err := v.compile(source)
	if err != nil {
		return err
	}
	v.free(f)
	return nil
}
