package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/fault"
)

func TestLockout(t *testing.T) {
	const locked = "Account is temporarily locked due to multiple authentication failures"
	synctest.Test(t, func(t *testing.T) {
		a, _, h := newTest(t)
		core, lines := observer.New(zap.WarnLevel)
		a.log = zap.New(core)
		addUser(t, a, "alice", "apple", "")
		fail := func(name string, n int) {
			for range n {
				if got := who(t, a, "Authorization", basic(name, "wrong")); got != refused {
					t.Fatalf("%s: %s", name, got)
				}
			}
		}
		for _, name := range []string{"alice", "adm", "nobody"} { // I2: the same for all of them
			fail(name, 5)
			_, err := a.Authenticate(request("Authorization", basic(name, "wrong")))
			wantFault(t, err, fault.Forbidden, locked)
			if told := lines.TakeAll(); len(told) != 6 || told[5].Message != "threshold of failed logins reached" {
				t.Errorf("%s: %v", name, told)
			}
		}
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != locked {
			t.Error("the right password opens a locked account:", got)
		}
		elsewhere := request("Authorization", basic("alice", "apple"))
		elsewhere.RemoteAddr = "198.51.100.7:1"
		if res, err := a.Authenticate(elsewhere); err != nil || res.User.Name != "alice" {
			t.Error("another peer is locked out:", err)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "warn")
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != "default:alice readers" {
			t.Error("mode warn:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "enforce")
		addUser(t, a, "alice", "apricot", "")
		if got := who(t, a, "Authorization", basic("alice", "apricot")); got != "default:alice readers" {
			t.Error("a new password is locked:", got)
		}
		pass(5 * time.Minute)
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
			t.Error("after max_lifetime:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "mode", "off")
		fail("adm", 7)
		h.SetVolatile("chttpd_auth_lockout", "mode", "enforce")
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != "default:adm _admin" {
			t.Error("failures were counted in mode off:", got)
		}
		h.SetVolatile("chttpd_auth_lockout", "threshold", "2")
		fail("adm", 2)
		if got := who(t, a, "Authorization", basic("adm", "pass")); got != locked {
			t.Error("threshold 2:", got)
		}
	})
}

// TestLockoutOfJobs: a replication that comes again with a wrong password has not
// guessed anew; guesses of one account lock its own replications only.
func TestLockoutOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		addUser(t, a, "alice", "apple", "")
		job := func(account, password string) error {
			t.Helper()
			_, err := a.AuthenticateJob(request("Authorization", basic("alice", password)), account)
			return err
		}
		for range 7 {
			wantFault(t, job("bob", "wrong"), fault.Unauthorized, "Name or password is incorrect.")
		}
		if err := job("bob", "apple"); err != nil {
			t.Error("another replication of the account:", err)
		}
		for i := range 4 {
			wantFault(t, job("bob", fmt.Sprint("guess", i)), fault.Unauthorized, "Name or password is incorrect.")
		}
		wantFault(t, job("bob", "guess"), fault.Forbidden, errLocked().Error())
		wantFault(t, job("bob", "apple"), fault.Forbidden, errLocked().Error())
		if err := job("carl", "apple"); err != nil {
			t.Error("of another account:", err)
		}
		for i := range 5 {
			wantFault(t, job("idp:eve", fmt.Sprint("guess", i)), fault.Unauthorized, "Name or password is incorrect.")
		}
		for _, account := range []string{"idp:carl", "idp", "[idp:eve]"} {
			if err := job(account, "apple"); err != nil {
				t.Error(account, err)
			}
		}
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != "default:alice readers" {
			t.Error("a client:", got)
		}
		pass(5 * time.Minute)
		if err := job("bob", "apple"); err != nil {
			t.Error("after max_lifetime:", err)
		}
	})
}

// TestOneHashForManyRequests holds I3: 64 clients with the same credentials,
// some with a wrong password, while the only slot is taken.
func TestOneHashForManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1, a.lockout)
		addUser(t, a, "alice", "apple", "")
		occupy(t, a)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				password, want := "apple", "default:alice readers"
				if i%16 == 1 { // fewer than lock the account
					password, want = "pear", refused
				}
				if got := who(t, a, "Authorization", basic("alice", password)); got != want {
					t.Errorf("%s: %s", password, got)
				}
			})
		}
		synctest.Wait()
		if n := a.verifier.hashing.waiting(); n != 2 {
			t.Errorf("%d hashes wait for two credentials", n)
		}
		a.verifier.hashing.release()
		wg.Wait()
	})
}

// TestHashQueueIsBounded holds I3: the oldest has to go, and is told.
func TestHashQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1, a.lockout)
		occupy(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var crowded []int
		for i := range hashQueue + 1 {
			wg.Go(func() {
				r := request("Authorization", basic("u"+strconv.Itoa(i), "x")).WithContext(ctx)
				_, err := a.Authenticate(r)
				if fault.Is(err, fault.Unavailable) {
					wantFault(t, err, fault.Unavailable, "Too many logins at this time. Try again later.")
					crowded = append(crowded, i)
				} else if !errors.Is(err, context.Canceled) {
					t.Errorf("a request that was given up: %v", err)
				}
			})
			synctest.Wait()
		}
		if !slices.Equal(crowded, []int{0}) || a.verifier.hashing.waiting() != hashQueue {
			t.Errorf("%v are refused, %d wait", crowded, a.verifier.hashing.waiting())
		}
		cancel()
		wg.Wait()
		a.verifier.hashing.release()
		if got := who(t, a, "Authorization", basic("late", "x")); got != refused {
			t.Error(got)
		}
	})
}

// TestCachesStaySmall holds I6 for what strangers can send.
func TestCachesStaySmall(t *testing.T) {
	a, store, _ := newTest(t)
	long := strings.Repeat("x", maxName+1)
	if got := who(t, a, "Authorization", basic(long, "p")); got != refused || store.reads() != 0 || a.users.cache.len() != 0 {
		t.Errorf("%s, %d reads, %d accounts kept", got, store.reads(), a.users.cache.len())
	}
	for range 4 {
		who(t, a, "Authorization", basic(long+"y", "p")) // the same beginning: the same attempts
	}
	if got := who(t, a, "Authorization", basic(long, "p")); !strings.Contains(got, "locked") {
		t.Error("a long name is not locked out:", got)
	}
	addUser(t, a, "big", "p", `,"totp":{"key":"`+strings.Repeat("GEZDGNBV", accountSize/4)+`"}`)
	who(t, a, "Authorization", basic("big", "p"))
	if n := a.users.cache.len(); n != 0 {
		t.Errorf("%d accounts kept, one too large", n)
	}
}
