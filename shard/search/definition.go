package search

import (
	"encoding/json"

	"divan/shard/index"
	"divan/shard/search/analysis"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Definition says what an index holds: what of a design document counts for one index. It is
// immutable.
type Definition struct {
	Dialect   syntax.Dialect // _search or _nouveau
	Signature string         // names the index: a hash of Text, hexadecimal
	Text      []byte         // canonical form, JSON; travels between nodes
	// Design is a design document that has the index, for _active_tasks; it is no part of the
	// signature, and empty until who made the definition sets it.
	Design string
	// Label is the name of the index in the design document, likewise.
	Label string

	Function    json.RawMessage  // makes fields of documents: JavaScript as a string, or the object of Mango
	Partitioned bool             // the database is: design documents are left out, and _partition is a field
	Analyzers   *analysis.Fields // nil in what Parse and ParseAll return, which only look whether there are such

	// ByPartition says, in what Parse and ParseAll return, that a query has to name a
	// partition. It is no part of Text: indexes of one signature may differ in it.
	ByPartition bool
}

func (d *Definition) name() index.Name { return index.Name{Type: index.Search, Signature: d.Signature} }

// Wanted returns the index that the definition describes.
func (d *Definition) Wanted() index.Definition {
	return index.Definition{Name: d.name(), Design: d.Design, Label: d.Label, Text: d.Text}
}

// Mango reports whether the index is one of Mango, whose fields no function makes.
func (d *Definition) Mango() bool { return doc.IsObject(d.Function) }

// IncludesDesign reports whether design documents are indexed as well.
func (d *Definition) IncludesDesign() bool {
	return d.Dialect == syntax.Search && !d.Partitioned && !d.Mango()
}

// definitionText is Definition.Text: members of the design document, and what kind it is.
type definitionText struct {
	Type            string            `json:"type"` // "search" or "nouveau"
	Partitioned     bool              `json:"partitioned,omitempty"`
	Analyzer        json.RawMessage   `json:"analyzer,omitempty"`         // of _search
	DefaultAnalyzer string            `json:"default_analyzer,omitempty"` // of _nouveau
	FieldAnalyzers  map[string]string `json:"field_analyzers,omitempty"`  // of _nouveau
	Index           json.RawMessage   `json:"index"`
}

// ParseText returns the definition whose Text it is given. The error is a *fault.Error: there
// is no such analyzer.
func ParseText(text []byte) (*Definition, error) {
	var t definitionText
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fault.Wrap(fault.InvalidDesignDoc, "a definition of an index that cannot be read", err)
	}
	d := &Definition{Text: text, Function: t.Index, Partitioned: t.Partitioned}
	var err error
	switch t.Type {
	case "search":
		d.Dialect = syntax.Search
		d.Analyzers, err = analysis.SearchFields(t.Analyzer)
	case "nouveau":
		d.Dialect = syntax.Nouveau
		d.Analyzers, err = analysis.NouveauFields(t.DefaultAnalyzer, t.FieldAnalyzers)
	default:
		err = fault.Newf(fault.InvalidDesignDoc, "unknown type of full-text index: %q", t.Type)
	}
	d.Signature = signatureOf(d.Dialect, text)
	return d, err
}
