package search

import (
	"encoding/json"
	"net/http"
	"strings"

	"divan/httpapi/core"
	"divan/shard/search/analysis"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

func bad(reason string) error { return fault.New(fault.BadRequest, reason) }

// getSearchAnalyze answers GET /_search_analyze.
func getSearchAnalyze(c *core.Call) error {
	name, ok := c.QueryValue("analyzer")
	if !ok {
		return errNoAnalyzer()
	}
	text, ok := c.QueryValue("text")
	if !ok {
		return errNoText()
	}
	a, err := analysis.Named(name, syntax.Search)
	if err != nil {
		return err
	}
	return sendTokens(c, a, text)
}

func errNoAnalyzer() error { return bad("analyzer parameter is mandatory") }
func errNoText() error     { return bad("text parameter is mandatory") }

// members returns the members of a body that is an object.
func members(c *core.Call) (map[string]json.RawMessage, error) {
	if err := c.Body.RequireJSON(); err != nil {
		return nil, err
	}
	if _, err := c.Body.ReadAll(c.Config.CouchDB.MaxDocumentSize); err != nil { // no larger text is indexed
		return nil, err
	}
	body, err := c.Body.ReadValue()
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	if !doc.IsObject(body) || json.Unmarshal(body, &out) != nil {
		return nil, bad("Request body must be a JSON object")
	}
	return out, nil
}

// postSearchAnalyze answers POST /_search_analyze.
func postSearchAnalyze(c *core.Call) error {
	body, err := members(c)
	if err != nil {
		return err
	}
	definition, ok := body["analyzer"]
	if !ok {
		return errNoAnalyzer()
	}
	if definition, ok = analyzerDefinition(definition); !ok {
		return bad("analyzer parameter must be a string or an object")
	}
	value, ok := body["text"]
	if !ok {
		return errNoText()
	}
	text, ok := str(value)
	if !ok {
		return bad("text parameter must be a string")
	}
	a, err := analysis.Defined(definition)
	if err != nil {
		return err
	}
	return sendTokens(c, a, text)
}

// analyzerDefinition returns what names an analyzer: a string, an object that is not
// empty, or, as CouchDB has it, a list of strings, which is those joined.
func analyzerDefinition(value json.RawMessage) (json.RawMessage, bool) {
	switch value[0] {
	case '"':
		return value, true
	case '{':
		return value, string(value) != "{}"
	case '[':
		var parts []string
		if json.Unmarshal(value, &parts) != nil {
			return nil, false
		}
		return doc.AppendString(nil, strings.Join(parts, "")), true
	}
	return nil, false
}

// str returns the text of a JSON string.
func str(value json.RawMessage) (text string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(value, &text) == nil
}

// nouveauAnalyze answers POST /_nouveau_analyze.
func nouveauAnalyze(c *core.Call) error {
	body, err := members(c)
	if err != nil {
		return err
	}
	text, ok := str(body["text"])
	name, named := str(body["analyzer"])
	switch {
	case !ok || !named:
		return bad("'text' and 'analyzer' fields must be non-empty strings")
	case name == "":
		return bad("analyzer must not be empty")
	case text == "":
		return bad("text must not be empty")
	}
	a, err := analysis.Named(name, syntax.Nouveau)
	if err != nil {
		return err
	}
	return sendTokens(c, a, text)
}

// sendTokens answers with what the analyzer makes of the text.
func sendTokens(c *core.Call, a *analysis.Analyzer, text string) error {
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte {
		dst = append(dst, `{"tokens":[`...)
		var s analysis.Stream
		s.Reset(a, text)
		first := true
		for token, ok := s.Next(); ok; token, ok = s.Next() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = doc.AppendString(dst, string(token.Term))
		}
		return append(dst, "]}"...)
	})
}
