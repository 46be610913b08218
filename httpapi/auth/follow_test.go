package auth

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesMadeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		addUser(t, a, "alice", "apple", "")
		login := func() string { return who(t, a, "Authorization", basic("alice", "apple")) }

		// Not followed: an account counts for a few seconds.
		if got := login(); got != "default:alice readers" {
			t.Fatal(got)
		}
		store.set("_users", "alice", `{"name":"alice"}`)
		pass(accountTrust)
		if got := login(); got != refused {
			t.Error("a stale account is believed:", got)
		}

		// Followed: a change counts at once, and nothing is read again without.
		stop := start(t, a)
		synctest.Wait()
		addUser(t, a, "alice", "apple", "")
		if got := login(); got != "default:alice readers" {
			t.Fatal(got)
		}
		reads := store.reads()
		pass(accountAge - time.Second)
		login()
		if n := store.reads() - reads; n != 0 {
			t.Errorf("%d reads of an unchanged user", n)
		}
		store.set("_users", "alice", `{"name":"alice"}`)
		if got := login(); got != refused {
			t.Error("a change is not seen:", got)
		}

		// Another database is another set of users.
		store.set("people", "zoe", `{"name":"zoe"}`)
		h.SetVolatile("chttpd_auth", "authentication_db", "people")
		pass(2 * followRetry)
		store.mu.Lock()
		if n := len(store.watchers); n != 2 {
			t.Errorf("%d databases were followed, want both", n)
		}
		store.mu.Unlock()
		stop()
	})
}

func TestFollowRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, _ := newTest(t)
		store.deaf = true
		stop := start(t, a)
		pass(3 * followRetry)
		if a.users.following.Load() {
			t.Error("changes count as followed without a database")
		}
		store.mu.Lock()
		store.deaf = false
		store.mu.Unlock()
		pass(2 * followRetry)
		if !a.users.following.Load() {
			t.Error("changes are not followed")
		}
		stop()
		if a.users.following.Load() {
			t.Error("changes count as followed after the end")
		}
	})
}

// TestAnswersFromBeforeAChangeAreNotKept: a read that began before a write
// must not fill the cache after it.
func TestAnswersFromBeforeAChangeAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, _ := newTest(t)
		addUser(t, a, "alice", "apple", "")
		store.hold = make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { who(t, a, "Authorization", basic("alice", "apple")) })
		synctest.Wait() // the old document is on its way
		store.mu.Lock()
		hold := store.hold
		store.hold = nil
		store.mu.Unlock()
		addUser(t, a, "alice", "apricot", "")
		if got := who(t, a, "Authorization", basic("alice", "apricot")); got != "default:alice readers" {
			t.Error("read your own write:", got)
		}
		close(hold)
		wg.Wait()
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != refused {
			t.Error("the old password is back:", got)
		}
	})
}

func TestUpgrade(t *testing.T) {
	const simple = `{"name":"bob","type":"user","roles":["old"],"password_scheme":"simple","salt":"0123456789abcdef0123456789abcdef","password_sha":"a46bd4798a459535a54bd684c61f556626357bbb"}`
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		defer start(t, a)()
		store.set("_users", "bob", simple)
		h.SetVolatile("chttpd_auth", "upgrade_hash_on_auth", "false")
		who(t, a, "Authorization", basic("bob", "cherry"))
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Fatal("upgraded although it is switched off")
		}
		h.SetVolatile("chttpd_auth", "upgrade_hash_on_auth", "true")
		a.verifier.verified.clear()
		who(t, a, "Authorization", basic("bob", "wrong"))
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Fatal("a wrong password became the right one")
		}
		ses, err := a.Login(t.Context(), Login{Name: "bob", Password: "cherry"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		u := <-store.puts
		acc, err := parseAccount(u)
		if err != nil || acc.hash.scheme != schemePBKDF2 || acc.hash.cost() != 10 || strings.Contains(string(u.Body), "password_sha") {
			t.Fatalf("%s, %v", u.Body, err)
		}
		if got := who(t, a, "Authorization", basic("bob", "cherry")); got != "default:bob old" {
			t.Error("after the upgrade:", got)
		}
		if got := who(t, a, "Cookie", "AuthSession="+valueOf(ses.SetCookie)); got != "cookie:bob old" {
			t.Error("the session did not outlive the upgrade:", got)
		}
		synctest.Wait()
		if len(store.puts) != 0 {
			t.Error("upgraded twice")
		}
		h.SetVolatile("chttpd_auth", "iterations", "12")
		who(t, a, "Authorization", basic("bob", "cherry"))
		synctest.Wait()
		if len(store.puts) != 1 {
			t.Error("more iterations are no reason")
		}
	})
}

func TestUpgradeLeavesAChangedDocumentAlone(t *testing.T) {
	a, store, _ := newTest(t)
	store.set("_users", "bob", `{"name":"bob"}`)
	u := upgrade{db: "_users", name: "bob", password: "x", rev: store.docs["_users/bob"].Rev}
	store.set("_users", "bob", `{"name":"bob","note":1}`)
	if err := a.upgrade(t.Context(), u); err != nil || len(store.puts) != 0 {
		t.Errorf("%v, %d writes", err, len(store.puts))
	}
	u.name = "gone"
	if err := a.upgrade(t.Context(), u); err != nil {
		t.Error(err)
	}
}
