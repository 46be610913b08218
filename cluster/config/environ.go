package config

import "strings"

// note says that a variable of the environment sets nothing, and why.
type note struct{ variable, text string }

// fromEnviron understands the variables of CouchDB's container image and
// DIVAN_SECTION__KEY for any key; sections and keys are lower case. notes are
// about variables that were meant to set something and do not.
func fromEnviron(environ []string) (l Layer, notes []note) {
	var user, password string
	for _, item := range environ {
		name, value, _ := strings.Cut(item, "=")
		switch name {
		case "COUCHDB_USER":
			user = value
		case "COUCHDB_PASSWORD":
			password = value
		case "COUCHDB_SECRET":
			if value != "" {
				l.Put("chttpd_auth", "secret", value)
			}
		case "COUCHDB_ERLANG_COOKIE":
			if value != "" {
				l.Put("cluster", "secret", value)
			}
		case "NODENAME":
			if value != "" {
				l.Put("cluster", "node_name", nodeName(value))
			}
		default:
			rest, ours := strings.CutPrefix(name, "DIVAN_")
			section, key, ok := strings.Cut(rest, "__")
			switch {
			case !ours:
			case ok && section != "" && key != "":
				l.Put(strings.ToLower(section), strings.ToLower(key), value)
			default:
				notes = append(notes, note{name, "environment variable ignored, it is not like DIVAN_SECTION__KEY"})
			}
		}
	}
	switch {
	case user != "" && password != "":
		l.Put(adminSection, user, password)
	case user != "":
		notes = append(notes, note{"COUCHDB_USER", "environment variable ignored, there is no COUCHDB_PASSWORD"})
	case password != "":
		notes = append(notes, note{"COUCHDB_PASSWORD", "environment variable ignored, there is no COUCHDB_USER"})
	}
	return l, notes
}

// nodeName completes a bare host as CouchDB's image does.
func nodeName(value string) string {
	if strings.Contains(value, "@") {
		return value
	}
	return "couchdb@" + value
}
