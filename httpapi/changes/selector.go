package changes

import (
	"bytes"
	"net/http"

	"divan/httpapi/core"
	"divan/shard"
	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// selectorFilter reads the body of filter=_selector: a Mango selector, and
// perhaps the fields of documents that are wanted, nil for all.
func selectorFilter(c *core.Call, body []byte) (shard.Filter, *query.Fields, error) {
	if c.Method != http.MethodPost {
		return shard.Filter{}, nil, fault.New(fault.BadRequest, "Selector must be specified in POST payload")
	}
	selector := doc.Lookup(body, "selector")
	if !doc.IsObject(selector) {
		return shard.Filter{}, nil, fault.New(fault.BadRequest, "Selector error: expected a JSON object")
	}
	fields, err := feedFields(doc.Lookup(body, "fields"))
	if err != nil {
		return shard.Filter{}, nil, err
	}
	return shard.Filter{Kind: shard.FilterSelector, Selector: bytes.Clone(selector)}, fields, nil
}

// feedFields reads the fields that a feed shows of documents; nil for all.
// A list is refused with the words of _find, anything else with those of feeds.
func feedFields(text []byte) (*query.Fields, error) {
	if text == nil {
		return nil, nil
	}
	if !doc.IsArray(text) {
		return nil, fault.New(fault.BadRequest, "Selector error: fields must be JSON array")
	}
	fields, err := query.ParseFields(text)
	return fields, selectorError(err)
}

// selectorError gives the refusal of a selector, or of a list of fields, the
// name it has in feeds (api.md section 20, row 18).
func selectorError(err error) error {
	if fault.Is(err, fault.InvalidSelector) {
		return fault.New(fault.BadRequest, fault.Reason(err))
	}
	return err
}
