package plan

import (
	"errors"
	"strings"
	"testing"

	"divan/storage/fault"
)

// TestTextIndex: what is wrong with the definition of a text index.
func TestTextIndex(t *testing.T) {
	const bad = "invalid_index_fields_definition"
	for body, want := range map[string]string{
		`{"type":"text","index":{}}`:                                                                      "",
		`{"type":"nouveau","index":{}}`:                                                                   "",
		`{"type":"text","index":{"fields":[]}}`:                                                           "",
		`{"type":"text","index":{"fields":"a"}}`:                                                          bad + `: Text Index field definitions must be of the form` + "\n" + `            {"name": "non-empty fieldname", "type":` + "\n" + `                "boolean,number, or string"}. Def: <<"a">>`,
		`{"type":"text","index":{"fields":["a"]}}`:                                                        bad,
		`{"type":"text","index":{"fields":[{"name":"a"}]}}`:                                               bad,
		`{"type":"text","index":{"fields":[{"name":"","type":"string"}]}}`:                                bad,
		`{"type":"text","index":{"fields":[{"name":"a..b","type":"string"}]}}`:                            bad,
		`{"type":"text","index":{"fields":[{"name":"a","type":"date"}]}}`:                                 bad,
		`{"type":"text","index":{"fields":[{"name":"a","type":"text"}]}}`:                                 bad,
		`{"type":"nouveau","index":{"fields":[{"name":"a","type":"text"}]}}`:                              "",
		`{"type":"text","index":{"fields":[{"name":"a","type":"string","store":true}]}}`:                  bad,
		`{"type":"text","index":{"fields":[{"type":"number","name":"a"},{"name":"b","type":"boolean"}]}}`: "",
		`{"type":"text","index":{"fields":"all_fields","index_array_lengths":false}}`:                     "",
		`{"type":"text","index":{"default_field":false}}`:                                                 "",
		`{"type":"text","index":{"default_field":"x"}}`:                                                   "invalid_index: default_field must be a boolean or an object",
		`{"type":"text","index":{"nosuch":1}}`:                                                            "invalid_key: Invalid key nosuch for this request.",
		`{"type":"text","index":{"index_array_lengths":"yes"}}`:                                           "invalid_boolean: Invalid boolean value: <<121,101,115>>",
		`{"type":"text","index":{"selector":3}}`:                                                          "invalid_selector_json: Selector must be a JSON object, not: 3",
		`{"type":"text","index":{"partial_filter_selector":{"a":{"$nosuch":1}}}}`:                         "invalid_operator: Invalid operator: $nosuch",
		`{"type":"text","index":{"partial_filter_selector":{"$text":"a"}}}`:                               "no_usable_index",
		`{"index":{"fields":["a"],"partial_filter_selector":{"$text":"a"}}}`:                              "no_usable_index",
		`{"type":"text","index":"x"}`:                                                                     "invalid_index: Text indexes must be an object, not: <<120>>",
		`{"type":"special","index":{}}`:                                                                   "invalid_index: Invalid type for index: special",
	} {
		_, err := ParseCreate([]byte(body))
		var f *fault.Error
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", body, err)
			}
		} else if !errors.As(err, &f) || !strings.HasPrefix(f.Code+": "+f.Reason, want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// TestTextDefinition: what is stored of the definition of a text index, and what clients see.
func TestTextDefinition(t *testing.T) {
	const fields = `"fields":[{"name":"a.b","type":"string"},{"name":"n","type":"number"}]`
	for _, c := range []struct{ given, stored, shown string }{
		{
			`{}`,
			`{"index":{"default_analyzer":"keyword","default_field":{},"partial_filter_selector":{},"selector":{},"fields":"all_fields","index_array_lengths":true},` +
				`"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"standard"}}}`,
			`{"default_analyzer":"keyword","default_field":{},"selector":{},"fields":[],"index_array_lengths":true}`,
		},
		{
			`{"default_field":{"enabled":true,"analyzer":"english"},"partial_filter_selector":{"x":1},"index_array_lengths":false,` + fields + `}`,
			`{"index":{"default_analyzer":"keyword","default_field":{"enabled":true,"analyzer":"english"},"partial_filter_selector":{"x":{"$eq":1}},"selector":{},` + fields +
				`,"index_array_lengths":false},"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"english"}}}`,
			`{"default_analyzer":"keyword","default_field":{"enabled":true,"analyzer":"english"},"partial_filter_selector":{"x":{"$eq":1}},"selector":{},` +
				`"fields":[{"a.b":"string"},{"n":"number"}],"index_array_lengths":false}`,
		},
		{
			`{"default_field":false,"default_analyzer":"english"}`,
			`{"index":{"default_analyzer":"english","default_field":false,"partial_filter_selector":{},"selector":{},"fields":"all_fields","index_array_lengths":true},"analyzer":"keyword"}`,
			`{"default_analyzer":"english","default_field":false,"selector":{},"fields":[],"index_array_lengths":true}`,
		},
	} {
		for _, kind := range []Kind{Text, Nouveau} {
			create, err := ParseCreate([]byte(`{"type":"` + kind.String() + `","ddoc":"d","name":"i","index":` + c.given + `}`))
			if err != nil {
				t.Fatal(err)
			}
			body, err := create.AddTo(nil)
			if want := `{"language":"query","` + kind.member() + `":{"i":` + c.stored + `}}`; err != nil || string(body) != want {
				t.Errorf("%s: %s, %v, want %s", c.given, body, err, want)
			}
			all := IndexesOf("_design/d", body, false)
			want := `{"ddoc":"_design/d","name":"i","type":"` + kind.String() + `","partitioned":false,"def":` + c.shown + `}`
			if len(all) != 1 || string(all[0].AppendJSON(nil)) != want {
				t.Errorf("%s: %s, want %s", c.given, all[0].AppendJSON(nil), want)
			}
			if again, err := create.AddTo(body); again != nil || err != nil {
				t.Errorf("%s: made twice: %s, %v", c.given, again, err)
			}
			if left := RemoveFrom(body, all); left != nil {
				t.Errorf("%s is left", left)
			}
		}
	}
}

// TestAllFieldsDisabled: an administrator may forbid indexes of all fields.
func TestAllFieldsDisabled(t *testing.T) {
	for body, want := range map[string]bool{
		`{"type":"text","index":{}}`: true, `{"type":"nouveau","index":{"fields":[]}}`: true, `{"index":{"fields":["a"]}}`: false,
		`{"type":"text","index":{"fields":[{"name":"a","type":"string"}]}}`: false,
	} {
		c, err := ParseCreate([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Restrict(true); fault.Is(err, fault.Forbidden) != want || c.Restrict(false) != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}
