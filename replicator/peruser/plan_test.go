package peruser

import (
	"testing"

	"divan/cluster/meta"
)

func TestNext(t *testing.T) {
	const fresh = `{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`
	const hers = `{"members":{"roles":["_admin"],"names":["ann"]},"admins":{"roles":["_admin"],"names":["ann"]}}`
	for _, tc := range []struct {
		name     string
		alive    bool
		there    bool
		security string
		deletes  bool
		want     step
		becomes  string
	}{
		{"a new account", true, false, "", false, create, ""},
		{"a new database", true, true, fresh, true, grant, hers},
		{"all is done", true, true, hers, true, nothing, ""},
		{"no object", true, true, "", false, grant, `{"admins":{"names":["ann"]},"members":{"names":["ann"]}}`},
		{
			"others stay", true, true, `{"x":1,"admins":{"names":["bob"],"roles":["r"]},"members":{"names":["ann","bob"]}}`, false, grant,
			`{"x":1,"admins":{"names":["ann","bob"],"roles":["r"]},"members":{"names":["ann","bob"]}}`,
		},
		{
			"deleted", false, true, `{"admins":{"names":["bob","ann"]},"members":{"names":["ann"],"roles":[]}}`, false, revoke,
			`{"admins":{"names":["bob"]},"members":{"names":[],"roles":["_admin"]}}`,
		},
		{
			"the only member is deleted", false, true, `{"members":{"names":["ann"],"roles":[ ]}}`, false, revoke,
			`{"members":{"names":[],"roles":["_admin"]}}`,
		},
		{
			"others are members", false, true, `{"members":{"names":["ann","bob"],"roles":[]}}`, false, revoke,
			`{"members":{"names":["bob"],"roles":[]}}`,
		},
		{"deleted long ago", false, true, fresh, false, nothing, ""},
		{"never had one", false, true, "", false, nothing, ""},
		{"goes with it", false, true, hers, true, drop, ""},
		{"has gone with it", false, false, "", true, nothing, ""},
	} {
		var db *meta.Database
		if tc.there {
			db = &meta.Database{Security: []byte(tc.security)}
		}
		got, becomes, err := next("ann", tc.alive, db, tc.deletes)
		if err != nil || got != tc.want || string(becomes) != tc.becomes {
			t.Errorf("%s: %v %s %v", tc.name, got, becomes, err)
		}
	}
}

// Names of databases are those of CouchDB, and no two accounts have one.
func TestDatabaseOf(t *testing.T) {
	for account, want := range map[string]string{
		"foo": "userdb-666f6f", "Ann@x": "userdb-416e6e4078", "ü": "userdb-c3bc", "a": "userdb-61", "\x06\x01": "userdb-0601",
	} {
		if got := databaseOf("userdb-", account); got != want {
			t.Errorf("%q: %s, want %s", account, got, want)
		}
	}
}
