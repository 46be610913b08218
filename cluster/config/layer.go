package config

import (
	"maps"
	"strings"
)

// Layer is one layer of configuration: texts that are set, and keys of the
// layers below that are hidden. Layers are immutable once handed to a Holder.
type Layer struct {
	Set    Values
	Hidden map[string]map[string]bool
}

func layerOf(v Values) Layer { return Layer{Set: v} }

// Put sets a value and drops the mark that hides it.
func (l *Layer) Put(section, key, value string) {
	if l.Set == nil {
		l.Set = Values{}
	}
	if l.Set[section] == nil {
		l.Set[section] = map[string]string{}
	}
	l.Set[section][key] = value
	prune(l.Hidden, section, key)
}

// Hide drops a value and hides the key of the layers below.
func (l *Layer) Hide(section, key string) {
	l.Drop(section, key)
	if l.Hidden == nil {
		l.Hidden = map[string]map[string]bool{}
	}
	if l.Hidden[section] == nil {
		l.Hidden[section] = map[string]bool{}
	}
	l.Hidden[section][key] = true
}

// Drop forgets a key, so that the layers below decide.
func (l *Layer) Drop(section, key string) {
	prune(l.Hidden, section, key)
	prune(l.Set, section, key)
}

// prune removes a key and what is empty without it, so that layers that say
// the same are equal.
func prune[L ~map[string]map[string]V, V any](l L, section, key string) {
	delete(l[section], key)
	if len(l[section]) == 0 {
		delete(l, section)
	}
}

// Empty reports whether the layer says nothing.
func (l Layer) Empty() bool { return len(l.Set) == 0 && len(l.Hidden) == 0 }

// Clone returns a copy that may be changed.
func (l Layer) Clone() Layer {
	out := Layer{Set: make(Values, len(l.Set)), Hidden: make(map[string]map[string]bool, len(l.Hidden))}
	for s, keys := range l.Set {
		out.Set[s] = maps.Clone(keys)
	}
	for s, keys := range l.Hidden {
		out.Hidden[s] = maps.Clone(keys)
	}
	return out
}

// merge lays the layers over one another, the last one on top. Sections
// without keys are left out.
func merge(layers ...Layer) Values {
	out := Values{}
	for _, l := range layers {
		for s, keys := range l.Hidden {
			for k := range keys {
				delete(out[s], k)
			}
		}
		for s, keys := range l.Set {
			if out[s] == nil {
				out[s] = make(map[string]string, len(keys))
			}
			for k, v := range keys {
				out[s][k] = strings.TrimSpace(v)
			}
		}
	}
	maps.DeleteFunc(out, func(_ string, keys map[string]string) bool { return len(keys) == 0 })
	return out
}

// defaults are the keys that CouchDB's default.ini sets. Keys whose default
// lives in code only are not here, because GET says 404 for them.
func defaults() Layer {
	return layerOf(Values{
		"vendor":          {"name": "Divan"},
		"cluster":         {"q": "2", "n": "3"},
		"chttpd":          {"port": "5984", "bind_address": "127.0.0.1"},
		"couchdb_engines": {"couch": "couch_bt_engine"},
		"indexers":        {"couch_mrview": "true"},
		"jwt_auth":        {"required_claims": "exp"},
		"prometheus":      {"additional_port": "false", "bind_address": "127.0.0.1", "port": "17986"},
	})
}

// Has reports whether the layer says something of a key.
func (l Layer) Has(section, key string) bool {
	_, set := l.Set[section][key]
	return set || l.Hidden[section][key]
}
