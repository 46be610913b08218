package listing

import (
	"net/http"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Read reads the parameters of a request: those in the body of a POST, which is
// JSON, then those of the query string, which win (api.md 11.1). inBody says that
// the keys are those of the body.
func Read(c *core.Call) (v Params, inBody bool, err error) {
	v = newViewParams()
	if c.Method == http.MethodPost {
		if err := c.Body.RequireJSON(); err != nil {
			return v, false, err
		}
		text, err := c.Body.ReadAll(0)
		if err != nil {
			return v, false, err
		}
		if err := v.applyBody(text); err != nil {
			return v, false, err
		}
		if err := refuseQueries(text); err != nil {
			return v, false, err
		}
	}
	_, inQuery := c.QueryValue("keys")
	inBody = v.Keys != nil && !inQuery
	return v, inBody, v.applyQuery(c.Query)
}

// refuseQueries refuses the member that CouchDB 2 took on the plain path.
func refuseQueries(body []byte) error {
	return doc.EachMember(body, func(name string, _ []byte) error {
		if name == "queries" {
			return fault.New(fault.BadRequest, "The `queries` parameter is no longer supported at this endpoint")
		}
		return nil
	})
}

// EachQuery reads the body {"queries":[…]} of a request with several queries.
// The query string holds defaults for all.
func EachQuery(c *core.Call, text []byte, fn func(v *Params) error) error {
	var list []byte
	err := doc.EachMember(text, func(name string, value []byte) error {
		if name == "queries" {
			list = value
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case list == nil:
		return fault.New(fault.BadRequest, "POST body must include `queries` parameter.")
	case !doc.IsArray(list):
		return fault.New(fault.BadRequest, "`queries` member must be an array.")
	}
	defaults, err := ParseQuery(c.Query)
	if err != nil {
		return err
	}
	return c.Memory.EachElement(list, core.QuerySpace, func(value []byte) error {
		v := defaults
		if err := v.applyBody(value); err != nil {
			return err
		}
		return fn(&v)
	})
}

// KeysToKey treats a list of one key as that key; a bound that is given stands.
func (v *Params) KeysToKey() {
	var only []byte
	n := 0
	_ = doc.EachElement(v.Keys, func(key []byte) error { // no array is refused later
		only = key
		n++
		return nil
	})
	if n != 1 {
		return
	}
	v.Keys = nil
	if v.StartKey == nil {
		v.StartKey = only
	}
	if v.EndKey == nil {
		v.EndKey = only
	}
}
