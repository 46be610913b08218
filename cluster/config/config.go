// Package config turns CouchDB's configuration (sections of keys with text
// values) into one immutable, typed Snapshot behind an atomic pointer.
//
// The text values come from layers, each stronger than the one before:
//
//	built-in defaults
//	generated   what the cluster made up for itself (uuid, cookie secret)
//	files       ini files in the order given, CouchDB's own ones included
//	environment COUCHDB_…, NODENAME, DIVAN_SECTION__KEY
//	flags       the command line
//	cluster     set through HTTP for all nodes, kept in Raft
//	node        set through HTTP for this node, kept in Raft
//	volatile    set through HTTP with X-Couch-Persist: false, lost at the next reload
//
// A layer may also hide a key of the layers below it (an ini line with an
// empty value, a DELETE through HTTP); what was made up steps in for what is
// missing then, and when no administrator is left, those of files, environment
// and flags count again. The Holder owns the layers, rebuilds the Snapshot when one
// changes, and tells its subscribers.
//
// LOCKS: Holder.mu orders changes of layers and calls of subscribers; readers
// take no lock.
package config

import (
	"maps"
	"math"
)

// Infinity is the value of a size or a count that is set to "infinity". A duration of "infinity"
// reads as 0 and each such field says so.
const Infinity = math.MaxInt64

// Snapshot is the whole configuration at one moment. It is immutable: no caller may change a map or
// a slice reached through it.
type Snapshot struct {
	Clustering
	Queries
	CouchDB     CouchDB
	Chttpd      Chttpd
	ChttpdAuth  ChttpdAuth
	Lockout     Lockout
	JWT         JWT
	Proxy       Proxy
	Admins      map[string]string // name → stored form of the password ("-pbkdf2:…"), never plain text
	UUIDs       UUIDs
	Attachments Attachments
	CORS        CORS
	CSP         CSP
	Functions   Functions
	Log         Log
	Prometheus  Prometheus
	Limits      Limits
	Vendor      Vendor
	SSL         SSL

	values Values
}

// Values is section → key → text.
type Values map[string]map[string]string

// Get returns the text of one key, as GET …/_config/{section}/{key} shows it.
// ok is false for a key that is set nowhere, even where code has a default.
func (s *Snapshot) Get(section, key string) (value string, ok bool) {
	value, ok = s.values[section][key]
	return value, ok
}

// Section returns a copy of one section; it is empty when nothing is set.
func (s *Snapshot) Section(section string) map[string]string {
	out := maps.Clone(s.values[section])
	if out == nil {
		out = map[string]string{}
	}
	return out
}

// All returns a copy of everything that is set.
func (s *Snapshot) All() map[string]map[string]string {
	out := make(map[string]map[string]string, len(s.values))
	for name, section := range s.values {
		out[name] = maps.Clone(section)
	}
	return out
}

// Default returns the configuration of a node that was told nothing.
func Default() *Snapshot { return FromValues(nil) }

// FromValues returns the built-in defaults overridden by v; values that do not
// parse count as unset.
func FromValues(v Values) *Snapshot {
	s, _ := build(merge(defaults(), layerOf(v)))
	return s
}
