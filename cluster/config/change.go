package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"divan/storage/fault"
)

// Blocked reports whether a section is not to be changed through HTTP.
func Blocked(section string) bool {
	switch section {
	case "daemons", "external", "httpd_design_handlers", "httpd_db_handlers", "httpd_global_handlers",
		"native_query_servers", "os_daemons", "query_servers", "feature_flags":
		return true
	}
	return false
}

// Sensitive reports whether a value must not appear in a log.
func Sensitive(section, key string) bool {
	switch section {
	case adminSection, "jwt_keys":
		return true
	}
	return key == "secret" || key == "password" || strings.HasSuffix(key, "_password")
}

// Shared reports whether a key set through HTTP holds for all nodes, whichever
// node was addressed: a user who logs in at one node must be the same
// everywhere, and one node at a time keeps the databases of accounts.
func Shared(section, key string) bool {
	switch section {
	case adminSection, "jwt_keys", "couch_peruser":
		return true
	case "couchdb":
		return key == "uuid"
	case "chttpd_auth":
		return key == "secret" || key == "authentication_db"
	}
	return false
}

// Check says whether a value may be set through HTTP. The refusals are a
// fault.Forbidden for a blocked section and a fault.BadRequest for a name that
// no ini file could hold or a value that does not parse.
func Check(section, key, value string) error {
	if err := CheckName(section, key); err != nil {
		return err
	}
	if !visible(value) || len(value) > maxFile {
		return fault.New(fault.BadRequest, "Invalid configuration value")
	}
	_, problems := build(Values{section: {key: strings.TrimSpace(value)}})
	for _, p := range problems {
		if p.Section == section && p.Key == key {
			return fault.New(fault.BadRequest, p.Error())
		}
	}
	return nil
}

// CheckName is the part of Check that needs no value; DELETE uses it.
func CheckName(section, key string) error {
	switch {
	case Blocked(section):
		return fault.New(fault.Forbidden, "Config section blacklisted for modification over HTTP API.")
	case section == "" || strings.ContainsAny(section, "[]") || !visible(section):
		return fault.New(fault.BadRequest, "Invalid configuration section")
	case key == "" || strings.ContainsAny(key, "[]") || !visible(key):
		return fault.New(fault.BadRequest, "Invalid configuration key")
	}
	return nil
}

// visible reports whether s is text of one line.
func visible(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if c != '\t' && !unicode.IsGraphic(c) {
			return false
		}
	}
	return true
}

// ValueFromJSON turns the body of PUT …/_config/{section}/{key} into the text
// to be set: a JSON string stands for its text, any other JSON value for its
// own spelling (api.md 20, row 10). White space around is dropped.
func ValueFromJSON(body []byte) (string, error) {
	invalid := fault.New(fault.BadRequest, "invalid UTF-8 JSON")
	if !utf8.Valid(body) {
		return "", invalid
	}
	var text string
	if err := json.Unmarshal(body, &text); err == nil && !bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return strings.TrimSpace(text), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return "", invalid
	}
	return compact.String(), nil
}
