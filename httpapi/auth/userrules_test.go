package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/shard"
	"divan/shard/script"
	"divan/storage/doc"
	"divan/storage/fault"
)

var (
	admin   = shard.User{Name: "adm", Roles: []string{"_admin"}}
	someone = shard.User{Name: "carl", Roles: []string{"r1"}}
	noone   = shard.User{Anonymous: true}
)

// judge is the function of UserDesign.
type judge struct{ design *script.Design }

func newJudge(tb testing.TB) judge {
	tb.Helper()
	scripts := script.New(script.Options{})
	tb.Cleanup(func() {
		if err := scripts.Close(); err != nil {
			tb.Error(err)
		}
	})
	return judge{scripts.Design("_users", UserDesign().Body)}
}

// userEdit is an edit that is judged; an empty body is a deletion, an empty old a document
// that is new.
type userEdit struct{ id, body, old, security string }

// ask returns what is said of an edit.
func (j judge) ask(ctx context.Context, u shard.User, e userEdit) error {
	with := func(body string) []byte {
		rest := strings.TrimPrefix(body, "{")
		if rest != "}" {
			rest = "," + rest
		}
		return append(append([]byte(`{"_id":`), doc.AppendString(nil, e.id)...), rest...)
	}
	before := []byte("null")
	if e.old != "" {
		before = with(e.old)
	}
	return j.design.Validate(ctx, with(cmp.Or(e.body, `{"_deleted":true}`)), before,
		designdocs.AppendUser(nil, "_users", u), []byte(cmp.Or(e.security, "{}")))
}

// TestValidateUser holds the texts of golden auth/03 and 04 and of
// semantics.md section 10.
func TestValidateUser(t *testing.T) {
	const (
		eve    = "org.couchdb.user:eve"
		carl   = `{"name":"carl","type":"user","roles":["r1"]}`
		dbsec  = `{"admins":{"names":["carl"],"roles":["bosses"]},"members":{"names":[],"roles":[]}}`
		noText = ""
	)
	tests := []struct {
		name     string
		user     shard.User
		id, body string // an empty body is a deletion
		old      string
		security string
		reason   string // empty: allowed
	}{
		{"a type is needed", admin, eve, `{"name":"eve","roles":[]}`, "", "", "doc.type must be user"},
		{"of this value", admin, eve, `{"name":"eve","type":"person","roles":[]}`, "", "", "doc.type must be user"},
		{"type is no text", admin, eve, `{"name":"eve","type":["user"],"roles":[]}`, "", "", "doc.type must be user"},
		{"a name is needed", admin, eve, `{"type":"user","roles":[]}`, "", "", "doc.name is required"},
		{"null is no name", admin, eve, `{"name":null,"type":"user","roles":[]}`, "", "", "doc.name is required"},
		{"nor is nothing", admin, eve, `{"name":"","type":"user","roles":[]}`, "", "", "doc.name is required"},
		{"a name is a text", admin, UserPrefix + "5", `{"name":5,"type":"user","roles":[]}`, "", "", "Doc ID must be of the form org.couchdb.user:name"},
		{"roles are needed", admin, eve, `{"name":"eve","type":"user"}`, "", "", "doc.roles must exist"},
		{"null is no roles", admin, eve, `{"name":"eve","type":"user","roles":null}`, "", "", "doc.roles must exist"},
		{"as an array", admin, eve, `{"name":"eve","type":"user","roles":"readers"}`, "", "", "doc.roles must be an array"},
		{"no object", admin, eve, `{"name":"eve","type":"user","roles":{}}`, "", "", "doc.roles must be an array"},
		{"of strings", admin, eve, `{"name":"eve","type":"user","roles":["a",2]}`, "", "", "doc.roles can only contain strings"},
		{"the id must fit the name", admin, "org.couchdb.user:other", `{"name":"eve","type":"user","roles":[]}`, "", "", "Doc ID must be of the form org.couchdb.user:name"},
		{"the id must have the prefix", admin, "eve", `{"name":"eve","type":"user","roles":[]}`, "", "", "Doc ID must be of the form org.couchdb.user:name"},
		{"another document", admin, "x", `{"a":1}`, "", "", "doc.type must be user"},
		{"system roles are reserved", admin, eve, `{"name":"eve","type":"user","roles":["_admin"]}`, "", "", "No system roles (starting with underscore) in users db."},
		{"all of them", admin, eve, `{"name":"eve","type":"user","roles":["readers","_own"]}`, "", "", "No system roles (starting with underscore) in users db."},
		{"but one", admin, eve, `{"name":"eve","type":"user","roles":["_metrics"]}`, "", "", noText},
		{"no underscore", admin, "org.couchdb.user:_eve", `{"name":"_eve","type":"user","roles":[]}`, "", "", "Username may not start with underscore."},
		{"no colon", admin, "org.couchdb.user:e:ve", `{"name":"e:ve","type":"user","roles":[]}`, "", "", "Character `:` is not allowed in usernames."},
		{"iterations that are no number", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":"pbkdf2","iterations":"many","derived_key":"aa","salt":"bb"}`, "", "", "iterations must be a number."},
		{"no iterations", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":"pbkdf2","derived_key":"aa","salt":"bb"}`, "", "", "iterations must be a number."},
		{"a key that is no string", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":"pbkdf2","iterations":10,"derived_key":5,"salt":"bb"}`, "", "", "derived_key must be a string."},
		{"no salt", admin, eve, `{"name":"eve","type":"user","roles":[],"password_sha":"aa"}`, "", "", "Users with password_sha must have a salt.See /_utils/script/couch.js for example code."},
		{"an unknown scheme", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":"rot13","derived_key":"aa","salt":"bb"}`, "", "", "Password scheme `rot13` not supported."},
		{"a scheme that is no text", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":13}`, "", "", "Password scheme `13` not supported."},
		{"a null scheme", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":null,"password_sha":null}`, "", "", noText},
		{"simple", admin, eve, `{"name":"eve","type":"user","roles":[],"password_scheme":"simple","salt":"0","password_sha":"a"}`, "", "", noText},
		{"another name than before", admin, eve, `{"name":"eve","type":"user","roles":[]}`, `{"name":"adam","type":"user","roles":[]}`, "", "Usernames can not be changed."},

		{"anybody can sign up", noone, eve, `{"name":"eve","type":"user","roles":[]}`, "", "", noText},
		{"but without roles", noone, eve, `{"name":"eve","type":"user","roles":["boss"]}`, "", "", "Only _admin may set roles"},
		{"and not over another", noone, "org.couchdb.user:carl", carl, carl, "", "You may only update your own user document."},
		{"the own document", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":["r1"],"x":1}`, carl, "", noText},
		{"but not the own roles", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":["r1","r2"]}`, carl, "", "Only _admin may edit roles"},
		{"nor fewer of them", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":[]}`, carl, "", "Only _admin may edit roles"},
		{"their order does not count", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":["b","a"]}`, `{"name":"carl","type":"user","roles":["a","b"]}`, "", noText},
		{"nobody else's", someone, eve, `{"name":"eve","type":"user","roles":[]}`, `{"name":"eve","type":"user","roles":[]}`, "", "You may only update your own user document."},
		{"an admin of the database may", someone, eve, `{"name":"eve","type":"user","roles":["x"]}`, `{"name":"eve","type":"user","roles":[]}`, dbsec, noText},
		{"by role", shard.User{Name: "x", Roles: []string{"bosses"}}, eve, `{"name":"eve","type":"user","roles":["x"]}`, "", dbsec, noText},
		{"a member of it may not", shard.User{Name: "x"}, eve, `{"name":"eve","type":"user","roles":["x"]}`, "", dbsec, "Only _admin may set roles"},
		{"nobody is no admin of the database", noone, eve, `{"name":"eve","type":"user","roles":["x"]}`, "", `{"admins":{"names":[""]}}`, "Only _admin may set roles"},
		{"a broken security object", someone, eve, `{"name":"eve","type":"user","roles":["x"]}`, "", `{"admins":{"names":"carl"}}`, "Only _admin may set roles"},
		{"over a deletion that has roles", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":["boss"]}`, `{"_deleted":true,"name":"carl","roles":["boss"]}`, "", "Only _admin may edit roles"},
		{"over it without them", someone, "org.couchdb.user:carl", `{"name":"carl","type":"user","roles":[]}`, `{"_deleted":true,"name":"carl","roles":["boss"]}`, "", noText},

		{"an admin deletes", admin, eve, "", `{"name":"eve"}`, "", noText},
		{"the owner deletes", someone, "org.couchdb.user:carl", "", carl, "", noText},
		{"others do not", someone, eve, "", `{"name":"eve"}`, "", "Only admins may delete other user docs."},
		{"nobody does not", noone, eve, "", `{"name":"eve"}`, "", "Only admins may delete other user docs."},
		{"nobody does not delete the nameless", noone, eve, "", `{}`, "", "Only admins may delete other user docs."},
		{"nor what was not there", someone, eve, "", "", "", "Only admins may delete other user docs."},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind := fault.Kind(0)
			if tt.reason != "" {
				kind = fault.Forbidden
			}
			wantFault(t, j.ask(t.Context(), tt.user, userEdit{tt.id, tt.body, tt.old, tt.security}), kind, tt.reason)
		})
	}
}

func TestOnlyTheUsersHaveRules(t *testing.T) {
	h, err := config.New(config.Options{Flags: config.Values{"chttpd_auth": {"authentication_db": "people"}}})
	if err != nil {
		t.Fatal(err)
	}
	standard := Standard(h)
	for db, want := range map[string]bool{
		"_users": true, "people": true, "a/b/_users": true, "other": false, "a/x_users": false, "a/_users/b": false, "_replicator": false,
	} {
		if got := standard(db); (got != nil) != want || want && got.ID != "_design/_auth" {
			t.Errorf("%s: %+v", db, got)
		}
	}
	for db, want := range map[string]bool{"_users": false, "_replicator": true, "a/_replicator": true, "other": false} {
		if got := Rules(db); (got != nil) != want {
			t.Errorf("%s: %v", db, got != nil)
		}
	}
}

func FuzzValidateUser(f *testing.F) {
	f.Add("org.couchdb.user:eve", `{"name":"eve","type":"user","roles":["a"],"password":"x"}`, `{"name":"eve"}`, `{"admins":{"names":["x"]}}`)
	f.Add("x", `{"roles":[[],{}],"name":{}}`, `{"roles":1}`, `{"admins":[]}`)
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, id, body, old, security string) {
		for _, text := range []string{body, old, security} {
			var object map[string]any
			if strings.Contains(text, `"_`) || json.Unmarshal([]byte(text), &object) != nil || !strings.HasPrefix(text, "{") {
				t.Skip("no document as it is stored")
			}
		}
		if err := j.ask(t.Context(), someone, userEdit{id, body, old, security}); err == nil {
			if name, ok := UserName(id); !ok || name != someone.Name {
				t.Fatalf("%q was written by a stranger", id)
			}
		}
	})
}
