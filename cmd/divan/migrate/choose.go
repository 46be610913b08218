package migrate

import (
	"regexp"
	"slices"
	"strings"
)

// Databases of a server that have a meaning of their own.
const (
	usersDB      = "_users"
	replicatorDB = "_replicator"
)

// isReplicator reports whether a server runs the documents of this database.
func isReplicator(db string) bool {
	return db == replicatorDB || strings.HasSuffix(db, "/"+replicatorDB)
}

// builtIn is the id of the design document that CouchDB puts into a database of
// its own; "" for none. It is left behind: the target has rules of its own.
func builtIn(db string) string {
	switch {
	case db == usersDB:
		return "_design/_auth"
	case isReplicator(db):
		return "_design/_replicator"
	}
	return ""
}

// patterns are names in which * stands for anything.
type patterns []*regexp.Regexp

func newPatterns(texts []string) patterns {
	var out patterns
	for _, text := range texts {
		out = append(out, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*")+"$"))
	}
	return out
}

func (p patterns) match(name string) bool {
	return slices.ContainsFunc(p, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// choice sorts the databases of a server by their treatment.
type choice struct {
	take         []string // in the order in which they are brought
	replications []string // databases of replications that are left there for now
	own          []string // databases that the server keeps for itself
}

// choose decides which databases are brought: users first, so that they can
// log in; replications last, as they begin to run here at once.
func choose(names []string, cfg *Config) choice {
	var c choice
	only, exclude := newPatterns(cfg.Only), newPatterns(cfg.Exclude)
	var last []string
	for _, name := range names {
		switch {
		case len(only) > 0 && !only.match(name) || exclude.match(name):
		case name == usersDB:
			c.take = slices.Insert(c.take, 0, name)
		case isReplicator(name) && cfg.Replications:
			last = append(last, name)
		case isReplicator(name):
			c.replications = append(c.replications, name)
		case strings.HasPrefix(name, "_"):
			c.own = append(c.own, name)
		default:
			c.take = append(c.take, name)
		}
	}
	c.take = append(c.take, last...)
	return c
}
