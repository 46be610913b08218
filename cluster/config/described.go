package config

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

// Description describes a setting before it has a value. It is a row of a table of
// docs/configuration.md.
type Description struct {
	Section, Key string
	Default      string // in words where it is made up or computed; may be empty
	Meaning      string // may be empty
}

// described is made of docs/configuration.md; a test of cmd/divan compares them, and
// writes it anew with -describe. Fields are separated by tabs.
//
//go:embed described.txt
var described string

// Descriptions lists the settings that are documented, by section and key.
func Descriptions() []Description {
	var out []Description
	for line := range strings.Lines(described) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 4 {
			out = append(out, Description{f[0], f[1], f[2], f[3]})
		}
	}
	return out
}

// AtStart reports whether a setting is read at the start only: a change counts after a
// restart of the node.
func AtStart(section, key string) bool {
	switch section {
	case "cluster":
		return ownAddress(section, key)
	case "couchdb":
		return key == "single_node" || key == "max_dbs_open"
	case "log":
		return key == "writer" || key == "file" || key == "format"
	case "chttpd_auth":
		return key == "auth_cache_size"
	case "chttpd_auth_lockout":
		return key == "max_objects"
	case "query_server_config":
		return key == "max_index_memory"
	}
	return false
}

// ownAddress reports whether a setting has to be known before what was set through HTTP
// can be read: that may be on other nodes.
func ownAddress(section, key string) bool {
	return section == "cluster" && !slices.Contains([]string{"q", "n", "placement", "rebalance", "replace_after"}, key)
}

// Changeable reports whether a value that is set through HTTP counts at some time.
func Changeable(section, key string) bool {
	shown := section == "couchdb" && (key == "database_dir" || key == "view_index_dir") // they tell what --data says
	return !Blocked(section) && !shown && !ownAddress(section, key)
}

// String returns the name of a layer as the API shows it.
func (l Level) String() string {
	return [...]string{"default", "generated", "file", "environment", "flag", "cluster", "node", "memory"}[l]
}

// Source returns the strongest layer that sets or hides a key, Defaults when none does.
func (h *Holder) Source(section, key string) Level {
	h.mu.Lock()
	defer h.mu.Unlock()
	for level := levels - 1; level > Defaults; level-- {
		if !h.mu.layers[level].Has(section, key) {
			continue
		}
		// What was made up steps in for a key that is hidden or empty.
		_, made := h.mu.layers[Generated].Set[section][key]
		if made && h.mu.layers[level].Set[section][key] == "" {
			return Generated
		}
		return level
	}
	return Defaults
}

// Keys lists section and key of all that is set and all that is documented, in order.
func (s *Snapshot) Keys() [][2]string {
	all := map[[2]string]bool{}
	for section, keys := range s.values {
		for key := range keys {
			all[[2]string{section, key}] = true
		}
	}
	for _, d := range Descriptions() {
		all[[2]string{d.Section, d.Key}] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}
