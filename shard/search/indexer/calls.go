package indexer

import (
	"fmt"
	"strings"

	"divan/shard/script"
	"divan/shard/search"
	"divan/storage/fault"
)

// What one document may become. Beyond it the index cannot go on at the document: an error
// of the queries that wait for it, because fields are never lost.
const (
	maxDocBytes = 64 << 20 // of its fields
	fieldBytes  = 192      // a field beside its texts, about
)

// maxNameBytes is the length of the longest name of a field.
const maxNameBytes = 1 << 10

// calls makes fields of the calls of one function over one document.
type calls struct {
	nouveau bool
	fields  []search.Field
	first   int // of the document
	bytes   int // of its fields
	names   map[string]string
	// unusable is an error of a call that the function is not told of; nil: none.
	unusable error
}

// maxNames is how many names are kept for the next document.
const maxNames = 1000

func (c *calls) begin(dst []search.Field) {
	c.fields, c.first, c.bytes, c.unusable = dst, len(dst), 0, nil
	if c.names == nil || len(c.names) > maxNames {
		c.names = map[string]string{}
	}
}

// forget lets go of the fields, which are the caller's.
func (c *calls) forget() { c.fields = nil }

// Drop implements script.Calls.
func (c *calls) Drop(int) { c.fields, c.bytes, c.unusable = c.fields[:c.first], 0, nil }

// Call implements script.Calls.
func (c *calls) Call(call *script.Call) error {
	decide := searchField
	if c.nouveau {
		decide = nouveauField
	}
	f, err := decide(call)
	if err != nil {
		return err
	}
	if c.bytes += f.bytes(); c.bytes > maxDocBytes {
		return errTooMuch(maxDocBytes)
	}
	if f.unusable != nil && c.unusable == nil {
		c.unusable = f.unusable
	}
	c.fields = append(c.fields, f.field(c.name(f.name)))
	return nil
}

// errTooMuch returns the error for a document whose fields exceed the limit,
// most bytes.
func errTooMuch(most int) error {
	return &fault.Error{
		Kind: fault.BadFunction, Code: "too_many_fields", Reason: fmt.Sprintf("The limit of a document is exceeded: the fields to index have more than %d MB.", most>>20),
	}
}

// name returns a name as a string that all fields share.
func (c *calls) name(text []byte) string {
	name, ok := c.names[string(text)]
	if !ok {
		name = string(text)
		c.names[name] = name
	}
	return name
}

// decided is a field that a call is to make, whose texts are still those of the call.
type decided struct {
	name, text []byte
	of         search.Field // all else
	store      bool
	unusable   error
}

// bytes is how much memory the field takes, about.
func (d *decided) bytes() int {
	n := fieldBytes + len(d.name)
	if d.of.Indexed || d.of.Facet {
		n += len(d.text)
	}
	if d.store {
		n += len(d.text)
	}
	return n
}

// field makes the field.
func (d *decided) field(name string) search.Field {
	f := d.of
	f.Name = name
	if f.Indexed || f.Facet {
		f.Text = string(d.text)
	}
	if d.store {
		f.Stored = d.stored()
	}
	return f
}

// typeError returns the exception that index() throws for a value of the wrong
// type.
func typeError(what string) error { return &script.Refusal{Name: "TypeError", Message: what} }

// checkName checks the name of a field.
func checkName(a *script.Argument) error {
	switch {
	case a.Kind != script.Text:
		return typeError("The name of a field must be a string.")
	case strings.HasPrefix(string(a.Text), "_"):
		return &script.Refusal{Name: "ReservedName", Message: "The name of a field must not begin with an underscore."}
	case len(a.Text) > maxNameBytes:
		return &script.Refusal{Name: "RangeError", Message: fmt.Sprintf("The name of a field must not be longer than %d bytes.", maxNameBytes)}
	}
	return nil
}

// checkOptions checks what follows the value.
func checkOptions(a *script.Argument) error {
	if a.Truthy() && a.Kind != script.Object {
		return typeError("The options of a field must be an object.")
	}
	return nil
}

// stores reports whether the option store says that a value is stored.
func stores(a *script.Argument) bool {
	if a.Kind == script.Text {
		return strings.EqualFold(string(a.Text), "yes")
	}
	return a.True
}
