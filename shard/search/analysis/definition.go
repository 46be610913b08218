package analysis

import (
	"encoding/json"

	"divan/shard/search/syntax"
)

// Fields says which analyzer the fields of an index have. It is immutable.
type Fields struct {
	fallback *Analyzer
	named    map[string]*Analyzer
	whole    *Analyzer // of what the server itself indexes
}

// Of returns the analyzer of a field.
func (f *Fields) Of(field string) *Analyzer {
	if field == "_id" || field == "_partition" {
		return f.whole
	}
	if a, ok := f.named[field]; ok {
		return a
	}
	return f.fallback
}

// NouveauFields returns what default_analyzer and field_analyzers of an index of _nouveau
// say; an empty default is standard. An error is a *fault.Error: one of the names is none.
func NouveauFields(fallback string, named map[string]string) (*Fields, error) {
	if fallback == "" {
		fallback = "standard"
	}
	f := &Fields{named: make(map[string]*Analyzer, len(named))}
	var err error
	if f.fallback, err = Named(fallback, syntax.Nouveau); err != nil {
		return nil, err
	}
	for field, name := range named {
		if f.named[field], err = Named(name, syntax.Nouveau); err != nil {
			return nil, err
		}
	}
	f.whole, err = Named("keyword", syntax.Nouveau)
	return f, err
}

// searchDefinition is the member analyzer of an index of _search, when it is an object.
type searchDefinition struct {
	Name      string                     `json:"name"`
	StopWords []string                   `json:"stopwords"`
	Default   json.RawMessage            `json:"default"`
	Fields    map[string]json.RawMessage `json:"fields"`
}

// SearchFields returns what the member analyzer of an index of _search says: a name, an
// object with a name and perhaps other stop words, or one of those for each field. Empty
// JSON is the standard analyzer. An error is a *fault.Error: there is no such analyzer.
// Of a field, an unknown one is the default; an unknown default is standard.
func SearchFields(definition []byte) (*Fields, error) {
	f := &Fields{}
	var err error
	if f.whole, err = Named("keyword", syntax.Search); err != nil {
		return nil, err
	}
	if len(definition) == 0 {
		definition = []byte(`"standard"`)
	}
	var d searchDefinition
	if json.Unmarshal(definition, &d) != nil || d.Name != "perfield" {
		f.fallback, err = Defined(definition)
		return f, err
	}
	if f.fallback, err = Defined(d.Default); err != nil {
		if f.fallback, err = Named("standard", syntax.Search); err != nil {
			return nil, err
		}
	}
	f.named = make(map[string]*Analyzer, len(d.Fields))
	for field, of := range d.Fields {
		if a, err := Defined(of); err == nil {
			f.named[field] = a
		}
	}
	return f, nil
}

// Defined returns the analyzer of _search that JSON names: a string, or an object with a
// name and perhaps stop words in place of its own. An error is a *fault.Error: there is
// none.
func Defined(definition []byte) (*Analyzer, error) {
	var name string
	if json.Unmarshal(definition, &name) == nil {
		return Named(name, syntax.Search)
	}
	var d searchDefinition
	if json.Unmarshal(definition, &d) != nil {
		return Named("", syntax.Search)
	}
	a, err := Named(d.Name, syntax.Search)
	if err != nil || d.StopWords == nil {
		return a, err
	}
	return a.withStopWords(d.StopWords), nil
}
