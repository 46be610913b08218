package auth

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"divan/storage/fault"
)

// TestKnownLogin: a login that was right is known until one of the things changes that it
// was right by, and it is known of the peer only that it came from.
func TestKnownLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, store, h := newTest(t)
		addUser(t, a, "alice", "apple", "")
		header := basic("alice", "apple")
		known := func() bool {
			l := a.newBasicLogin(a.settings(), "192.0.2.1", header)
			_, ok := a.knows(&l)
			return ok
		}
		login := func(want string) {
			t.Helper()
			if got := who(t, a, "Authorization", header); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		again := func(why string) {
			t.Helper()
			if known() {
				t.Errorf("known %s", why)
			}
			login("default:alice readers")
			if !known() {
				t.Errorf("not known after the login %s", why)
			}
		}
		again("before any login")
		elsewhere := a.newBasicLogin(a.settings(), "192.0.2.2", header)
		if _, ok := a.knows(&elsewhere); ok {
			t.Error("known of another peer")
		}
		for range 3 {
			login("default:alice readers")
		}
		if hits := a.Figures().Hits; hits < 3 {
			t.Errorf("%d hits", hits)
		}
		h.SetVolatile("chttpd_auth", "timeout", "100")
		again("with other settings")
		a.Invalidate("bob")
		again("after a change of an account")
		who(t, a, "Authorization", basic("bob", "wrong"))
		again("after a failure")
		reads := store.gets
		pass(accountTrust)
		again("when the document has to be read again")
		if store.gets != reads+1 {
			t.Errorf("read %d times", store.gets-reads)
		}
		for range 5 {
			who(t, a, "Authorization", basic("alice", "wrong"))
		}
		login("Account is temporarily locked due to multiple authentication failures")
		addUser(t, a, "alice", "apricot", "")
		login(refused)
	})
}

// TestUnreadableAccountIsNotKnown: an administrator whose roles could not be read has them
// as soon as they can be.
func TestUnreadableAccountIsNotKnown(t *testing.T) {
	a, store, _ := newTest(t)
	addUser(t, a, "adm", "else", "")
	store.err = fault.New(fault.Unavailable, "gone")
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
		t.Fatal(got)
	}
	store.err = nil
	if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin,readers" {
		t.Error(got)
	}
}

// TestLongLoginIsNotKept: what is kept has a bound (I6).
func TestLongLoginIsNotKept(t *testing.T) {
	a, _, _ := newTest(t)
	long := strings.Repeat("p", basicLength)
	addUser(t, a, "alice", long, "")
	for range 2 {
		if got := who(t, a, "Authorization", basic("alice", long)); got != "default:alice readers" {
			t.Error(got)
		}
	}
	l := a.newBasicLogin(a.settings(), "192.0.2.1", basic("alice", long))
	if _, ok := a.knows(&l); ok || l.kept {
		t.Error("a long header is kept")
	}
	for i := range 2 * basicLimit {
		l := a.newBasicLogin(a.settings(), strconv.Itoa(i), "x")
		a.remember(&l, reading{account: &account{name: "alice"}})
	}
	kept := 0
	for i := range a.basic.seen.parts {
		kept += a.basic.seen.parts[i].entries.Len()
	}
	if kept == 0 || kept > basicLimit {
		t.Errorf("%d are kept", kept)
	}
}
