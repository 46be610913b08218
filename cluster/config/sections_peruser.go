package config

import (
	"divan/shard/ring"
)

// PerUser is section [couch_peruser]: a database for each account.
type PerUser struct {
	Enable    bool
	DeleteDBs bool   // a database goes with its account
	Q         int    // shards of a database
	Prefix    string // of names of databases, in front of the account's in hexadecimal digits
}

func readPerUser(r *reader) PerUser {
	const s, prefix = "couch_peruser", "userdb-"
	c := PerUser{
		Enable:    r.boolean(s, "enable", false),
		DeleteDBs: r.boolean(s, "delete_dbs", false),
		Q:         r.count(s, "q", 1, between(1, ring.MaxQ)),
		Prefix:    r.text(s, "database_prefix", prefix),
	}
	if ring.ValidateName(c.Prefix+"0") != nil {
		r.bad(s, "database_prefix", "the beginning of the name of a database")
		c.Prefix, c.Enable = prefix, false // no database of another prefix is made or deleted
	}
	return c
}
