package main

import (
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A value is nil, bool, json.Number, string, []any or object. Members of an
// object keep their order, because names are given in the order of appearance.
type object []member

type member struct {
	key   string
	value any
}

func (o object) get(key string) (any, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

var errNoJSON = errors.New("not one JSON value")

// decode reads exactly one JSON value.
func decode(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	v, err := decodeNext(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoJSON
	}
	return v, nil
}

func decodeNext(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, errNoJSON
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if delim == '[' {
		out := []any{}
		for dec.More() {
			v, err := decodeNext(dec)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = dec.Token()
		return out, err
	}
	return decodeObject(dec)
}

func decodeObject(dec *json.Decoder) (any, error) {
	out := object{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, errNoJSON
		}
		key, ok := tok.(string)
		if !ok {
			return nil, errNoJSON
		}
		v, err := decodeNext(dec)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(m member) bool { return m.key == key }); i >= 0 {
			out[i].value = v
			continue
		}
		out = append(out, member{key, v})
	}
	_, err := dec.Token()
	return out, err
}

// show prints a value as one line; sorted orders the members by name.
func show(v any, sorted bool) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return strconv.Quote(v)
		}
		return strings.TrimSuffix(b.String(), "\n")
	case []any:
		items := make([]string, len(v))
		for i, x := range v {
			items[i] = show(x, sorted)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case object:
		if sorted {
			v = slices.SortedFunc(slices.Values(v), func(a, b member) int { return strings.Compare(a.key, b.key) })
		}
		items := make([]string, len(v))
		for i, m := range v {
			items[i] = show(m.key, sorted) + ": " + show(m.value, sorted)
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "?"
}

// sameNumber compares by value: 1 and 1.0 are equal.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, ok1 := new(big.Rat).SetString(a.String())
	y, ok2 := new(big.Rat).SetString(b.String())
	return ok1 && ok2 && x.Cmp(y) == 0
}

// volatileMember reports whether the value of a member differs from run to run.
func volatileMember(key string) bool {
	switch key {
	case "instance_start_time", "started_on", "updated_on", "pid", "start_time", "end_time", "update_time",
		"last_updated", "timestamp", "session_id", "replication_id", "_replication_state_time", "execution_time_ms",
		"file", "active", "external", "disk_size", "data_size", "uuid", "git_sha", "purge_seq",
		"salt", "derived_key", "password_scheme", "iterations", "pbkdf2_prf", "waiting_commit", "signature":
		return true
	}
	return false
}

// normal replaces what the server made up by names, everywhere in the value.
func normal(v any, n *names, key string) any {
	switch v := v.(type) {
	case object:
		out := make(object, 0, len(v))
		for _, m := range v {
			out = append(out, member{n.norm(m.key), normal(m.value, n, m.key)})
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			out = append(out, normal(x, n, ""))
		}
		return out
	case string:
		if key == "bookmark" && v != "nil" {
			return n.fresh("bookmark", v)
		}
		if volatileMember(key) {
			return "{{any}}"
		}
		return n.norm(v)
	case json.Number:
		if volatileMember(key) {
			return "{{any}}"
		}
	}
	return v
}
