package search

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// form says how a parameter stands in a query string.
type form uint8

const (
	asText    form = iota // the text itself
	asJSON                // JSON
	asNumber              // digits; other text is a string
	asBoolean             // true or false; other text is a string
	asTag                 // a JSON string, or the text itself
)

// param is a parameter as JSON, whichever way it came.
type param struct {
	name  string
	value []byte
	plain bool // it stood in the query string as text, which errors show in another way
}

func badJSON() error { return bad("invalid UTF-8 JSON") }

// queryParams returns the parameters of a query string that have a form. Others are left out,
// as CouchDB does.
func queryParams(list core.Params, forms map[string]form) (out []param, err error) {
	for _, p := range list {
		f, known := forms[p.Name]
		if !known {
			continue
		}
		one := param{p.Name, []byte(p.Value), true}
		switch f {
		case asJSON:
			one.plain = false
			if one.value = []byte(strings.TrimSpace(p.Value)); !json.Valid(one.value) {
				return nil, badJSON()
			}
		case asNumber:
			if _, err := strconv.Atoi(p.Value); err != nil {
				one.value = doc.AppendString(nil, p.Value)
			}
		case asBoolean:
			if p.Value != "true" && p.Value != "false" {
				one.value = doc.AppendString(nil, p.Value)
			}
		case asTag:
			if value := strings.TrimSpace(p.Value); strings.HasPrefix(value, `"`) && json.Valid([]byte(value)) {
				one.value = []byte(value)
				break
			}
			one.value = doc.AppendString(nil, p.Value)
		default:
			one.value = doc.AppendString(nil, p.Value)
		}
		out = append(out, one)
	}
	return out, nil
}

// bodyParams returns the members of a body that have a form: of those with one name the
// last.
func bodyParams(body []byte, forms map[string]form) (out []param, err error) {
	if !doc.IsObject(body) {
		return nil, bad("Request body must be a JSON object")
	}
	err = doc.EachMember(body, func(name string, value []byte) error {
		if _, known := forms[name]; !known {
			return nil
		}
		if i := slices.IndexFunc(out, func(p param) bool { return p.name == name }); i >= 0 {
			out[i].value = value
			return nil
		}
		out = append(out, param{name: name, value: value})
		return nil
	})
	return out, err
}

// invalid is the error of a value that is of the wrong type. It is shown as CouchDB's
// language writes it.
func (p *param) invalid() error {
	shown := string(p.value)
	if text, ok := doc.Unquote(p.value); ok {
		if shown = strconv.Quote(text); !p.plain {
			shown = "<<" + shown + ">>"
		}
	}
	return fault.Newf(fault.QueryParse, "Invalid value for %s: %s", p.name, shown)
}

// text returns a string.
func (p *param) text() (string, bool) { return doc.Unquote(p.value) }

// boolean returns true or false; anything else is an error.
func (p *param) boolean() (bool, error) {
	switch string(p.value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, p.invalid()
}

// integer returns a whole number; anything else is an error.
func (p *param) integer() (int, error) {
	n, err := strconv.Atoi(string(p.value))
	if err != nil {
		return 0, p.invalid()
	}
	return n, nil
}

// null reports whether the value is null.
func (p *param) null() bool { return string(p.value) == "null" }

// texts returns the strings of a list; ok is false for anything else.
func texts(value []byte) (out []string, ok bool) {
	if !doc.IsArray(value) {
		return nil, false
	}
	out, ok = []string{}, true
	_ = doc.EachElement(value, func(e []byte) error { // of JSON that was read
		text, is := doc.Unquote(e)
		out, ok = append(out, text), ok && is
		return nil
	})
	return out, ok
}

// textList returns the strings of a list, or the error of CouchDB.
func (p *param) textList() ([]string, error) {
	out, ok := texts(p.value)
	if !ok {
		return nil, fault.Newf(fault.BadRequest, "%s is not a valid %s query", p.value, p.name)
	}
	return out, nil
}

// distinctTexts is textList for names of members of the answer: of equal ones the first stays.
func (p *param) distinctTexts() ([]string, error) {
	out, err := p.textList()
	known := make(map[string]struct{}, len(out))
	return slices.DeleteFunc(out, func(name string) bool {
		_, again := known[name]
		known[name] = struct{}{}
		return again
	}), err
}
