package indexer

import (
	"math"
	"strconv"

	"divan/shard/query"
	"divan/shard/search"
	"divan/storage/doc"
)

// Fields that every index of Mango has beside those of documents.
const (
	textField  = "$default"    // the strings that are indexed
	namesField = "$fieldnames" // the names of all fields, indexed or not
)

// textObject ends the name of an empty object, which has no other: what looks for a path
// that is there finds it.
const textObject = "_3aobject"

// maxMangoName is the length of the longest name of a field that is indexed. A longer one
// could not be looked for.
const maxMangoName = 8 << 10

// mangoWalk goes over the canonical text of a document once.
type mangoWalk struct {
	def   *mango
	text  []byte
	pos   int
	path  []byte // the encoded name of where it is
	out   []search.Field
	bytes int

	// names has the names of fields that were met, and in which document last.
	names     map[string]metName
	documents int
}

type metName struct {
	name     string
	document int
}

// document appends the fields of the document.
func (w *mangoWalk) document(def *mango, dst []search.Field) error {
	w.def, w.out, w.pos, w.path, w.bytes = def, dst, 0, w.path[:0], 0
	w.documents++
	if w.names == nil || len(w.names) > maxNames {
		w.names = map[string]metName{}
	}
	return w.value()
}

// peek is the byte at which it stands; 0 at the end.
func (w *mangoWalk) peek() byte {
	if w.pos < len(w.text) {
		return w.text[w.pos]
	}
	return 0
}

// value goes over the value at which it stands. Its depth is that of the document, which is
// limited.
func (w *mangoWalk) value() error {
	switch w.peek() {
	case '{':
		return w.object()
	case '[':
		return w.array()
	case '"':
		return w.string()
	case 't', 'f':
		truth := w.peek() == 't'
		w.scalar()
		return w.add(query.TextBoolean, search.Field{Text: strconv.FormatBool(truth), Exact: true})
	case 'n':
		w.scalar()
		return w.add(query.TextNull, search.Field{Text: "true", Exact: true})
	default:
		n, err := strconv.ParseFloat(string(w.scalar()), 64)
		if err != nil && !math.IsInf(n, 0) {
			return err
		}
		return w.add(query.TextNumber, search.Field{Number: n, IsNumber: true})
	}
}

// scalar moves behind a value that is neither a string nor has parts, and returns it.
func (w *mangoWalk) scalar() []byte {
	from := w.pos
	for c := w.peek(); c != 0 && c != ',' && c != '}' && c != ']'; c = w.peek() {
		w.pos++
	}
	return w.text[from:w.pos]
}

// quoted moves behind a string, and returns its text.
func (w *mangoWalk) quoted() string {
	from := w.pos
	for w.pos++; w.peek() != 0 && w.peek() != '"'; w.pos++ {
		if w.peek() == '\\' {
			w.pos++
		}
	}
	w.pos = min(w.pos+1, len(w.text))
	text, _ := doc.Unquote(w.text[from:w.pos]) // canonical
	return text
}

func (w *mangoWalk) string() error {
	text := w.quoted()
	at := len(w.out)
	if err := w.add(query.TextString, search.Field{Text: text}); err != nil {
		return err
	}
	if !w.def.text || !w.indexed(at) {
		return nil
	}
	return w.append(search.Field{Name: textField, Text: text, Indexed: true})
}

// indexed reports whether a value was indexed that was met when there were so many fields.
func (w *mangoWalk) indexed(at int) bool { return len(w.out) > at && w.out[at].Name != namesField }

func (w *mangoWalk) object() error {
	w.pos++
	if w.peek() == '}' {
		w.pos++
		return w.name(textObject)
	}
	for w.peek() == '"' {
		back := w.enter(w.quoted())
		w.pos++ // the colon
		if err := w.value(); err != nil {
			return err
		}
		w.path = w.path[:back]
		if w.peek() != ',' {
			break
		}
		w.pos++
	}
	w.pos++
	return nil
}

func (w *mangoWalk) array() error {
	w.pos++
	back := w.enter(query.ArrayKey)
	n := 0
	for c := w.peek(); c != 0 && c != ']'; c = w.peek() {
		if err := w.value(); err != nil {
			return err
		}
		if n++; w.peek() == ',' {
			w.pos++
		}
	}
	w.pos++
	var err error
	if w.def.lengths {
		err = w.field(query.TextLength, search.Field{Number: float64(n), IsNumber: true}, true)
	} else {
		err = w.name(query.TextLength)
	}
	w.path = w.path[:back]
	return err
}

// enter goes to a part; it returns how long the path was.
func (w *mangoWalk) enter(key string) (back int) {
	back = len(w.path)
	if len(w.path) > maxMangoName { // long enough to be left out
		return back
	}
	if back > 0 {
		w.path = append(w.path, '.')
	}
	w.path = query.AppendTextKey(w.path, key)
	return back
}

// add adds a value, if its name is among those that are indexed, and its name.
func (w *mangoWalk) add(suffix string, f search.Field) error {
	wanted := w.def.fields == nil
	if !wanted {
		back := len(w.path)
		w.path = append(w.path, suffix...)
		_, wanted = w.def.fields[string(w.path)]
		w.path = w.path[:back]
	}
	return w.field(suffix, f, wanted)
}

// name adds a name without a value.
func (w *mangoWalk) name(suffix string) error { return w.field(suffix, search.Field{}, false) }

// field adds a value if it is wanted, and its name.
func (w *mangoWalk) field(suffix string, f search.Field, wanted bool) error {
	back := len(w.path)
	defer func() { w.path = w.path[:back] }()
	if w.path = append(w.path, suffix...); len(w.path) > maxMangoName {
		return nil
	}
	met, known := w.names[string(w.path)]
	if !known {
		met.name = string(w.path)
	}
	if wanted && !math.IsInf(f.Number, 0) {
		f.Name, f.Indexed = met.name, true
		if err := w.append(f); err != nil {
			return err
		}
	}
	if met.document == w.documents {
		return nil
	}
	met.document = w.documents
	w.names[met.name] = met
	return w.append(search.Field{Name: namesField, Text: met.name, Indexed: true, Exact: true})
}

func (w *mangoWalk) append(f search.Field) error {
	w.bytes += fieldBytes + len(f.Text)
	if f.Name == namesField {
		w.bytes += fieldBytes // and what is known of the name
	}
	if w.bytes > maxDocBytes {
		return errTooMuch(maxDocBytes)
	}
	w.out = append(w.out, f)
	return nil
}
