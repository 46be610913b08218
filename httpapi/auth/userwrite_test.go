package auth

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// stored prepares a body as an administrator's write.
func stored(t *testing.T, a *Authenticator, body string) string {
	t.Helper()
	out, err := a.PrepareUser(t.Context(), UserWrite{ID: "org.couchdb.user:bob", Body: []byte(body), User: admin, Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPrepareUserHashes(t *testing.T) {
	a, _, _ := newTest(t)
	hash := `"password_scheme":"pbkdf2","pbkdf2_prf":"sha256","salt":"[0-9a-f]{32}","iterations":10,"derived_key":"[0-9a-f]{64}"`
	tests := []struct{ name, body, want string }{
		{
			"hash members first, the others in their order",
			`{"name":"bob","type":"user","roles":["cooks"],"password":"banana","note":"x"}`,
			`{` + hash + `,"name":"bob","type":"user","roles":\["cooks"\],"note":"x"}`,
		},
		{
			"nothing of an earlier hash stays",
			`{"password_scheme":"simple","salt":"s","password_sha":"a","name":"bob","type":"user","roles":[],"password":"b","derived_key":"c","iterations":1,"pbkdf2_prf":"sha"}`,
			`{` + hash + `,"name":"bob","type":"user","roles":\[\]}`,
		},
		{
			"preserve_salt",
			`{"name":"bob","type":"user","roles":[],"password":"b","salt":"kept","preserve_salt":true}`,
			`{"password_scheme":"pbkdf2","pbkdf2_prf":"sha256","salt":"kept","iterations":10,"derived_key":"[0-9a-f]{64}","name":"bob","type":"user","roles":\[\]}`,
		},
		{"an empty password is one", `{"name":"bob","type":"user","roles":[],"password":""}`, `{` + hash + `,"name":"bob","type":"user","roles":\[\]}`},
		{"no password is stored, whatever rules let in", `{"type":"robot","password":"b","x":1}`, `{` + hash + `,"type":"robot","x":1}`},
		{"also when that is all there is", `{"password":"b"}`, `{` + hash + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := stored(t, a, tt.body)
			if !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if _, err := doc.Canonical(nil, []byte(got)); err != nil {
				t.Errorf("%s: %v", got, err)
			}
		})
	}
	for _, same := range []string{
		`{"name":"bob","type":"user","roles":[]}`,
		`{"name":"bob","type":"user","roles":[],"password":null}`,
		`{"name":"bob","type":"user","roles":[],"password_scheme":"pbkdf2","salt":"s","iterations":1,"derived_key":"a"}`,
		`{}`,
	} {
		if got := stored(t, a, same); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}

func TestPrepareUserSimpleScheme(t *testing.T) {
	a, _, _ := newTest(t, "chttpd_auth", "password_scheme", "simple")
	got := stored(t, a, `{"name":"bob","type":"user","roles":[],"password":"b","derived_key":"x","iterations":5}`)
	want := `^{"password_scheme":"simple","salt":"[0-9a-f]{32}","password_sha":"[0-9a-f]{40}","name":"bob","type":"user","roles":\[\]}$`
	if !regexp.MustCompile(want).MatchString(got) {
		t.Error(got)
	}
}

func TestPrepareUserRefuses(t *testing.T) {
	rules := `[{".{4,}", "Min length is 4 chars."}, "[A-Z]+"]`
	const bob, body = "org.couchdb.user:bob", `{"name":"bob","type":"user","roles":[],"password":`
	tests := []struct {
		name    string
		setting []string
		write   UserWrite
		kind    fault.Kind
		reason  string
	}{
		{"a stranger's document", nil, UserWrite{ID: bob, Body: []byte(body + `"x"}`), User: someone}, fault.NotFound, "missing"},
		{"a stranger's document without password", nil, UserWrite{ID: bob, Body: []byte(`{}`), User: someone}, fault.NotFound, "missing"},
		{"deleting a stranger's", nil, UserWrite{ID: bob, Deleted: true, Body: []byte(`{}`), User: someone}, fault.NotFound, "missing"},
		{"nobody signs up", nil, UserWrite{ID: bob, Body: []byte(body + `"x"}`), User: noone}, 0, ""},
		{"the owner", nil, UserWrite{ID: bob, Body: []byte(body + `"x"}`), User: shard.User{Name: "bob"}}, 0, ""},
		{"an admin of the database", nil, UserWrite{ID: bob, Body: []byte(body + `"x"}`), User: someone, Admin: true}, 0, ""},
		{"a design document", nil, UserWrite{ID: "_design/x", Body: []byte(`{"password":"p"}`), User: someone}, 0, ""},
		{"no text", nil, UserWrite{ID: bob, Body: []byte(body + `5}`), User: admin, Admin: true}, fault.Forbidden, "Password value of '5' is invalid."},
		{
			"too short",
			[]string{"chttpd_auth", "password_regexp", rules},
			UserWrite{ID: bob, Body: []byte(body + `"ABC"}`), User: admin, Admin: true},
			fault.BadRequest, "Password does not conform to requirements. Min length is 4 chars.",
		},
		{
			"no capitals",
			[]string{"chttpd_auth", "password_regexp", rules},
			UserWrite{ID: bob, Body: []byte(body + `"abcd"}`), User: admin, Admin: true},
			fault.BadRequest, "Password does not conform to requirements.",
		},
		{"good", []string{"chttpd_auth", "password_regexp", rules}, UserWrite{ID: bob, Body: []byte(body + `"Abcd"}`), User: admin, Admin: true}, 0, ""},
		{
			"rules that do not parse",
			[]string{"chttpd_auth", "password_regexp", `[{"(?=x)"}]`},
			UserWrite{ID: bob, Body: []byte(body + `"Abcd"}`), User: admin, Admin: true},
			fault.Forbidden, "Server cannot hash passwords at this time.",
		},
		{"no rules", []string{"chttpd_auth", "password_regexp", ` [ ] `}, UserWrite{ID: bob, Body: []byte(body + `"x"}`), User: admin, Admin: true}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, _ := newTest(t, tt.setting...)
			_, err := a.PrepareUser(t.Context(), tt.write)
			wantFault(t, err, tt.kind, tt.reason)
		})
	}
}

// TestPreparedPasswordsVerify is the round trip from a client's password to a
// login.
func TestPreparedPasswordsVerify(t *testing.T) {
	a, _, _ := newTest(t)
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.String().Draw(t, "password")
		body := append(doc.AppendString([]byte(`{"name":"bob","type":"user","roles":[],"password":`), password), '}')
		out, err := a.PrepareUser(context.Background(), UserWrite{ID: "org.couchdb.user:bob", Body: body, Admin: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(password) > 3 && strings.Contains(string(out), password) {
			t.Fatalf("the password is in %s", out)
		}
		acc, err := parseAccount(UserDoc{Name: "bob", Body: out})
		if err != nil {
			t.Fatal(err)
		}
		for try, want := range map[string]bool{password: true, password + "x": false} {
			if ok, err := acc.hash.matches(context.Background(), try); ok != want || err != nil {
				t.Fatalf("%q: %v, %v", try, ok, err)
			}
		}
	})
}

func TestVisible(t *testing.T) {
	const carl = "org.couchdb.user:carl"
	body := `{"derived_key":"aa","name":"carl","type":"user","roles":["r1"]}`
	public := []string{"roles", "name"}
	tests := []struct {
		name   string
		read   UserRead
		want   string
		kind   fault.Kind
		reason string
		whole  bool
	}{
		{"the owner", UserRead{ID: carl, User: someone}, body, 0, "", true},
		{"an administrator", UserRead{ID: carl, User: admin, Admin: true}, body, 0, "", true},
		{"another", UserRead{ID: carl, User: shard.User{Name: "dora"}}, "", fault.NotFound, "missing", false},
		{"nobody", UserRead{ID: carl, User: noone}, "", fault.NotFound, "missing", false},
		{"nobody and public fields", UserRead{ID: carl, User: noone, Public: public}, `{"name":"carl","roles":["r1"]}`, 0, "", false},
		{"fields that are not there", UserRead{ID: carl, User: noone, Public: []string{"x"}}, "", fault.NotFound, "missing", false},
		{"the owner of another kind of document", UserRead{ID: "carl", User: someone}, "", fault.NotFound, "missing", false},
		{"nobody owns the nameless", UserRead{ID: UserPrefix, User: noone}, "", fault.NotFound, "missing", false},
		{
			"design documents",
			UserRead{ID: "_design/_auth", User: someone, Public: public},
			"", fault.Forbidden,
			"Only administrators can view design docs in the users database.", false,
		},
		{"design documents for administrators", UserRead{ID: "_design/_auth", Admin: true}, body, 0, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.read.Visible([]byte(body))
			wantFault(t, err, tt.kind, tt.reason)
			if string(got) != tt.want || tt.read.Whole() != tt.whole {
				t.Errorf("got %s, whole %v", got, tt.read.Whole())
			}
		})
	}
}

// TestSignUpsTakeTurns: a client that signs many names up keeps no client at another
// address from signing up.
func TestSignUpsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1, a.lockout)
		occupy(t, a)
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		signUp := func(peer string) {
			wg.Go(func() {
				w := UserWrite{
					ID: "org.couchdb.user:bob", Body: []byte(`{"name":"bob","type":"user","roles":[],"password":"x"}`),
					User: shard.User{Anonymous: true}, Peer: peer,
				}
				_, err := a.PrepareUser(t.Context(), w)
				mu.Lock()
				defer mu.Unlock()
				if order = append(order, peer); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		signUp("192.0.2.2")
		for i := range 10 {
			signUp("2001:db8::" + strconv.Itoa(i+1))
		}
		a.verifier.hashing.release()
		wg.Wait()
		if at := slices.Index(order, "192.0.2.2"); at < 0 || at > 1 {
			t.Errorf("%q", order)
		}
	})
}
