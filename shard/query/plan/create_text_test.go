package plan

import (
	"errors"
	"strings"
	"testing"

	"divan/storage/fault"
)

// A text index says what is wrong with its definition before it says that there is no
// search.
func TestTextIndex(t *testing.T) {
	const (
		bad  = "invalid_index_fields_definition"
		none = "required index service unavailable"
	)
	for body, want := range map[string]string{
		`{"type":"text","index":{}}`:                                                                      none + ": text",
		`{"type":"nouveau","index":{}}`:                                                                   none + ": nouveau",
		`{"type":"text","index":{"fields":[]}}`:                                                           none,
		`{"type":"text","index":{"fields":"a"}}`:                                                          bad + `: Text Index field definitions must be of the form` + "\n" + `            {"name": "non-empty fieldname", "type":` + "\n" + `                "boolean,number, or string"}. Def: <<"a">>`,
		`{"type":"text","index":{"fields":["a"]}}`:                                                        bad,
		`{"type":"text","index":{"fields":[{"name":"a"}]}}`:                                               bad,
		`{"type":"text","index":{"fields":[{"name":"","type":"string"}]}}`:                                bad,
		`{"type":"text","index":{"fields":[{"name":"a","type":"date"}]}}`:                                 bad,
		`{"type":"text","index":{"fields":[{"name":"a","type":"text"}]}}`:                                 bad,
		`{"type":"nouveau","index":{"fields":[{"name":"a","type":"text"}]}}`:                              none,
		`{"type":"text","index":{"fields":[{"name":"a","type":"string","store":true}]}}`:                  bad,
		`{"type":"text","index":{"fields":[{"type":"number","name":"a"},{"name":"b","type":"boolean"}]}}`: none,
		`{"type":"text","index":{"fields":"all_fields","index_array_lengths":false}}`:                     none,
		`{"type":"text","index":{"nosuch":1}}`:                                                            "invalid_key: Invalid key nosuch for this request.",
		`{"type":"text","index":{"index_array_lengths":"yes"}}`:                                           "invalid_boolean: Invalid boolean value: <<121,101,115>>",
		`{"type":"text","index":{"selector":3}}`:                                                          "invalid_selector_json: Selector must be a JSON object, not: 3",
		`{"type":"text","index":{"partial_filter_selector":{"a":{"$nosuch":1}}}}`:                         "invalid_operator: Invalid operator: $nosuch",
		`{"type":"text","index":"x"}`:                                                                     "invalid_index: Text indexes must be an object, not: <<120>>",
		`{"type":"special","index":{}}`:                                                                   "invalid_index: Invalid type for index: special",
	} {
		_, err := ParseCreate([]byte(body))
		var f *fault.Error
		if !errors.As(err, &f) || !strings.HasPrefix(f.Code+": "+f.Reason, want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
