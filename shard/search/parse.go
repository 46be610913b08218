package search

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"divan/shard/script"
	"divan/shard/search/analysis"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

// The languages of design documents that have full-text indexes.
const (
	javaScript = "javascript"
	mango      = "query"
)

// member is the name of the member of design documents that has the indexes of a dialect.
func member(d syntax.Dialect) string {
	if d == syntax.Nouveau {
		return "nouveau"
	}
	return "indexes"
}

// Parse returns an index of the body of a design document, by its name: of "indexes" or of
// "nouveau", as the dialect says. partitioned says that the database is. Errors are
// *fault.Error: NotFound, CompilationError, one whose code is unknown_query_language, what
// ParseText says of analyzers, and InvalidDesignDoc.
func Parse(ddoc []byte, dialect syntax.Dialect, name string, partitioned bool) (*Definition, error) {
	indexes := doc.Lookup(ddoc, member(dialect))
	switch {
	case indexes == nil:
		return nil, notFound(name)
	case !doc.IsObject(indexes):
		return nil, fault.Newf(fault.InvalidDesignDoc, "`%s` field must have object type", member(dialect))
	}
	given := doc.Lookup(indexes, name)
	if given == nil {
		return nil, notFound(name)
	}
	return newDesign(ddoc, partitioned).index(dialect, name, given)
}

// Named is the entry of a design document under the name of an index: its definition, or
// why it has none.
type Named struct {
	Dialect    syntax.Dialect // whose member the index is in
	Name       string
	Definition *Definition
	Err        error // as that of Parse
}

// compare orders by dialect and name.
func (n *Named) compare(dialect syntax.Dialect, name string) int {
	if c := cmp.Compare(n.Dialect, dialect); c != 0 {
		return c
	}
	return cmp.Compare(n.Name, name)
}

// ParseAll returns all indexes of the body of a design document, of both dialects, as Find
// wants them.
func ParseAll(ddoc []byte, partitioned bool) (out []Named) {
	var design *design
	for _, dialect := range []syntax.Dialect{syntax.Search, syntax.Nouveau} {
		indexes := doc.Lookup(ddoc, member(dialect))
		if !doc.IsObject(indexes) {
			continue
		}
		if design == nil {
			design = newDesign(ddoc, partitioned)
		}
		_ = doc.EachMember(indexes, func(name string, given []byte) error { // what is no JSON has no index
			d, err := design.index(dialect, name, given)
			out = append(out, Named{dialect, name, d, err})
			return nil
		})
	}
	slices.SortStableFunc(out, func(a, b Named) int { return a.compare(b.Dialect, b.Name) })
	return out
}

// Find returns the index of a dialect and a name among all.
func Find(all []Named, dialect syntax.Dialect, name string) (n Named, ok bool) {
	i, ok := slices.BinarySearchFunc(all, dialect, func(n Named, dialect syntax.Dialect) int { return n.compare(dialect, name) })
	if ok {
		n = all[i]
	}
	return n, ok
}

func notFound(name string) error { return fault.New(fault.NotFound, name+" not found.") }

// design is the part of a design document that counts beside its indexes.
type design struct {
	language    string
	partitioned bool // the database is
	byPartition bool
}

func newDesign(ddoc []byte, partitioned bool) *design {
	d := &design{language: javaScript, partitioned: partitioned, byPartition: partitioned}
	if language, ok := doc.Unquote(doc.Lookup(ddoc, "language")); ok {
		d.language = language
	}
	if options := doc.Lookup(ddoc, "options"); doc.IsObject(options) {
		if said := doc.Lookup(options, "partitioned"); said != nil {
			d.byPartition = partitioned && string(said) == "true"
		}
	}
	return d
}

// index makes the definition of one index of what the design document has under its name.
func (d *design) index(dialect syntax.Dialect, name string, given []byte) (*Definition, error) {
	var function []byte
	if doc.IsObject(given) {
		function = doc.Lookup(given, "index")
	}
	if function == nil {
		return nil, fault.Newf(fault.InvalidDesignDoc, "index `%s` must have parameter `index`", name)
	}
	out := &Definition{Dialect: dialect, Partitioned: d.partitioned, ByPartition: d.byPartition, Function: function}
	var analyzers []byte
	var err error
	_, source := doc.Unquote(function)
	switch {
	case script.Speaks(d.language) && !source:
		return nil, fault.New(fault.CompilationError, "Expression does not eval to a function. ("+string(function)+")")
	case d.language == mango && !out.Mango():
		return nil, fault.Newf(fault.InvalidDesignDoc, "`index` of the index `%s` must have object type", name)
	case d.language == mango:
		// Both types are built, and asked, as those of _search are.
		out.Dialect = syntax.Search
		analyzers, err = mangoAnalyzer(given, function)
	case !script.Speaks(d.language):
		return nil, &fault.Error{Kind: fault.Internal, Code: "unknown_query_language", Reason: d.language}
	case dialect == syntax.Nouveau:
		analyzers, err = nouveauAnalyzers(given)
	default:
		analyzers, err = searchAnalyzer(doc.Lookup(given, "analyzer"))
	}
	if err != nil {
		return nil, err
	}
	out.seal(analyzers)
	return out, nil
}

// searchAnalyzer returns the member analyzer of a text, empty for that which counts without
// one.
func searchAnalyzer(given []byte) ([]byte, error) {
	if name, ok := doc.Unquote(given); given == nil || ok && name == "standard" {
		return nil, nil
	}
	if _, err := analysis.SearchFields(given); err != nil {
		return nil, err
	}
	return append([]byte(`"analyzer":`), given...), nil
}

// nouveauAnalyzers is searchAnalyzer for _nouveau.
func nouveauAnalyzers(given []byte) (out []byte, err error) {
	fallback, named := "standard", map[string]string{}
	if of := doc.Lookup(given, "default_analyzer"); of != nil {
		name, ok := doc.Unquote(of)
		if !ok {
			name = string(of) // which is no name
		}
		if _, err := analysis.Named(name, syntax.Nouveau); err != nil {
			return nil, err
		}
		if fallback = name; name != "standard" {
			out = append(append(out, `"default_analyzer":`...), of...)
		}
	}
	if of := doc.Lookup(given, "field_analyzers"); of != nil && string(of) != "null" {
		if json.Unmarshal(of, &named) != nil {
			return nil, fault.New(fault.InvalidDesignDoc, "`field_analyzers` must be an object whose values are names of analyzers")
		}
		if len(named) > 0 {
			if len(out) > 0 {
				out = append(out, ',')
			}
			out = append(append(out, `"field_analyzers":`...), of...)
		}
	}
	_, err = analysis.NouveauFields(fallback, named)
	return out, err
}

// mangoAnalyzer is searchAnalyzer for an index of Mango. Its definitions name the analyzers;
// of one that does not, the object says them.
func mangoAnalyzer(given, definition []byte) ([]byte, error) {
	if of := doc.Lookup(given, "analyzer"); of != nil {
		return searchAnalyzer(of)
	}
	fallback := doc.Lookup(definition, "default_analyzer")
	if fallback == nil {
		fallback = []byte(`"keyword"`)
	}
	text := doc.Lookup(doc.Lookup(definition, "default_field"), "analyzer")
	if text == nil {
		text = []byte(`"standard"`)
	}
	out := append([]byte(`{"name":"perfield","default":`), fallback...)
	out = append(append(out, `,"fields":{"$default":`...), text...)
	return searchAnalyzer(append(out, "}}"...))
}

// seal makes the text of a definition, and its signature.
func (d *Definition) seal(analyzers []byte) {
	text := make([]byte, 0, len(`{"type":"nouveau","partitioned":true,,"index":}`)+len(analyzers)+len(d.Function))
	if d.Dialect == syntax.Nouveau {
		text = append(text, `{"type":"nouveau"`...)
	} else {
		text = append(text, `{"type":"search"`...)
	}
	if d.Partitioned {
		text = append(text, `,"partitioned":true`...)
	}
	if len(analyzers) > 0 {
		text = append(append(text, ','), analyzers...)
	}
	text = append(text, `,"index":`...)
	at := len(text)
	text = append(text, d.Function...)
	d.Function = text[at:len(text):len(text)] // nothing else of the design document is kept
	d.Text = append(text, '}')
	d.Signature = signatureOf(d.Dialect, d.Text)
}

// signatureOf is as long as CouchDB's is in each dialect.
func signatureOf(d syntax.Dialect, text []byte) string {
	if d == syntax.Nouveau {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	sum := md5.Sum(text)
	return hex.EncodeToString(sum[:])
}
