package query

import (
	"context"

	"divan/storage/doc"
	"divan/storage/fault"
)

// Limits of what a selector may be; CouchDB has none.
const (
	// maxDepth bounds the nesting of conditions, so that no selector can
	// exhaust the stack.
	maxDepth = 400
	// maxMemory bounds what a selector keeps, in bytes as budget counts them:
	// some 25,000 conditions, 8,000 short patterns, or one condition on a path
	// of half a million names. Arguments do not count, as they keep little more
	// than their text, so a list of ids in $in may have any length.
	maxMemory = 32 << 20
	// inlineSlots is the number of top-level names that need no allocation.
	inlineSlots = 8
)

// Selector is a parsed selector. It never changes and is safe for concurrent
// use.
type Selector struct {
	root  *node // nil: matches every document
	slots slots
}

// Parse reads the JSON text of a selector. A selector that is refused gives
// *fault.Error of kind InvalidSelector, with CouchDB's error name in Code and
// its text in Reason (api.md section 14.4); text that is no JSON gives
// fault.BadRequest.
func Parse(text []byte) (*Selector, error) {
	canonical, err := doc.Canonical(nil, text)
	if err != nil {
		return nil, err
	}
	if !doc.IsObject(canonical) {
		return nil, invalid("invalid_selector_json", "Selector must be a JSON object, not: "+term(canonical))
	}
	if string(canonical) == "{}" {
		return &Selector{}, nil
	}
	left := budget(maxMemory)
	p := parser{text: canonical, left: &left}
	root, err := p.selector()
	if err != nil {
		return nil, err
	}
	if root, err = pushFields(root, "", &left); err != nil {
		return nil, err
	}
	if root, err = pushNegations(root); err != nil {
		return nil, err
	}
	if root.op == opField && root.field == "" {
		return nil, invalid("invalid_selector", "One or more conditions is missing a field name.")
	}
	s := &Selector{root: root}
	if err := s.resolve(root, true, &left); err != nil {
		return nil, err
	}
	return s, nil
}

// Match reports whether a document satisfies the selector. The document is
// its whole canonical JSON text, with _id, _rev and the like. What it takes is taken
// from w: when that is spent the error is *fault.Error of kind InvalidSelector, and
// when its context ends it is that of the context.
func (s *Selector) Match(w *Work, document []byte) (bool, error) {
	if s.root == nil {
		return true, nil
	}
	if !doc.IsObject(document) {
		return false, nil
	}
	w.begin()
	defer w.leave()
	w.slots = s.slots.fill(w.slots[:0], document)
	ok := w.eval(s.root, document, false)
	if err := w.end(); err != nil {
		return false, err
	}
	return ok, nil
}

// NoTextIndex refuses a selector that only an index of full text can judge, where there is
// none. Match takes what such an index has found for a match.
func NoTextIndex() error {
	return invalid("no_usable_index", "There is no index available for this selector.")
}

// Compile makes a filter of one request from the text of a selector: it tells which
// documents match.
func Compile(text []byte, g Gate) (func(ctx context.Context, documents [][]byte) ([]bool, error), error) {
	s, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if s.Text() {
		return nil, NoTextIndex()
	}
	var w *Work
	return func(ctx context.Context, documents [][]byte) ([]bool, error) {
		if w == nil {
			w = NewWork(ctx, g)
		}
		matches := make([]bool, len(documents))
		for i := range documents {
			var err error
			if matches[i], err = s.Match(w, documents[i]); err != nil {
				return nil, err
			}
		}
		return matches, nil
	}, nil
}

// Nothing reports whether a query by this selector returns no rows for any
// documents: its whole content is an empty list of conditions, as in {"$or":
// []}. Match, as in CouchDB, knows no such exception.
func (s *Selector) Nothing() bool {
	return s.root != nil && (s.root.op == opAnd || s.root.op == opOr) && len(s.root.kids) == 0
}

// resolve splits the paths of the fields below n. Those that start at the
// document (top) get a slot.
func (s *Selector) resolve(n *node, top bool, b *budget) error {
	if n.op == opField {
		if err := s.resolvePath(n, top, b); err != nil {
			return err
		}
		top = false
	}
	for _, kid := range n.kids {
		if err := s.resolve(kid, top, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Selector) resolvePath(n *node, top bool, b *budget) error {
	if n.field == "" {
		return nil
	}
	if err := b.takePath(n.field); err != nil {
		return err
	}
	names, err := splitField(n.field)
	if err != nil {
		return err
	}
	n.raw = n.field == "_id"
	n.slot = -1
	if top {
		n.slot = s.slots.add(names[0])
		names = names[1:]
	}
	n.path = make([]step, len(names))
	for i, name := range names {
		n.path[i] = newStep(name)
	}
	return nil
}

// invalid is a refusal with CouchDB's name and text.
func invalid(code, reason string) *fault.Error {
	return &fault.Error{Kind: fault.InvalidSelector, Code: code, Reason: reason}
}
