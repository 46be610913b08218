package auth

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"divan/storage/fault"
)

// occupy takes the only turn.
func occupy(t *testing.T, a *Authenticator) {
	t.Helper()
	if err := a.verifier.hashing.acquire(t.Context(), applicant{}); err != nil {
		t.Fatal(err)
	}
}

// served lets applicants queue up one after the other while the only turn is taken,
// and returns in which order they are called; "!" stands before who is refused.
func served(t *testing.T, list []applicant) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		turns := &fairSemaphore{limit: 1}
		if err := turns.acquire(t.Context(), applicant{}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, who := range list {
			wg.Go(func() {
				err := turns.acquire(t.Context(), who)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					wantFault(t, err, fault.Unavailable, "Too many logins at this time. Try again later.")
					order = append(order, "!"+who.peer+"/"+who.name)
					return
				}
				order = append(order, who.peer+"/"+who.name)
				turns.release()
			})
			synctest.Wait()
		}
		turns.release()
		wg.Wait()
		if n := turns.waiting(); n != 0 || turns.mu.running != 0 {
			t.Errorf("%d wait, %d run at the end", n, turns.mu.running)
		}
	})
	return order
}

// flood are attempts from one peer with made-up names.
func flood(peer string, n int) (list []applicant) {
	for i := range n {
		list = append(list, applicant{peer: peer, name: fmt.Sprint("made-up", i)})
	}
	return list
}

func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		title string
		list  []applicant
		who   string
		most  int // turns before
	}{
		{"another peer", append(flood("a", 100), applicant{peer: "b", name: "ann"}), "b/ann", 1},
		{"another peer, when the queue is full", append(flood("a", hashQueue+10), applicant{peer: "b", name: "ann"}), "b/ann", 1},
		{"the same peer, a name that is known there", append(flood("a", hashQueue+10), applicant{peer: "a", name: "ann", proven: true}), "a/ann", 0},
		{"the same peer, a new name", append(flood("a", hashQueue+10), applicant{peer: "a", name: "ann"}), "a/ann", 0},
		{"the same peer, one name tried often", append(slices.Repeat([]applicant{{peer: "a", name: "adm"}}, 100), applicant{peer: "a", name: "ann"}), "a/ann", 1},
		{"the same peer, another name tried often since", append([]applicant{{peer: "a", name: "ann"}}, slices.Repeat([]applicant{{peer: "a", name: "adm"}}, 100)...), "a/ann", 1},
		{"many peers, a name that is known", append(slices.Concat(flood("a", 400), flood("b", 400), flood("c", 400)), applicant{peer: "d", name: "ann", proven: true}), "d/ann", 0},
	} {
		order := served(t, tt.list)
		called := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return s[0] == '!' })
		if at := slices.Index(called, tt.who); at < 0 || at > tt.most {
			t.Errorf("%s: is number %d", tt.title, at)
		}
		if len(order) != len(tt.list) || len(called) != min(len(tt.list), hashQueue) {
			t.Errorf("%s: %d of %d called, %d in all", tt.title, len(called), len(tt.list), len(order))
		}
	}
	known := applicant{peer: "a", name: "ann", proven: true}
	for title, later := range map[string][]applicant{
		"known names that come again and again": slices.Repeat([]applicant{known}, 100),
		"new names, one after the other":        flood("b", 100),
	} {
		order := served(t, append([]applicant{{peer: "b", name: "new"}}, later...))
		if at := slices.Index(order, "b/new"); at > 3 {
			t.Errorf("%s: who was there first is number %d", title, at)
		}
	}
}

// TestTurnsOfProcessors: half of the processors hash passwords, and one does in any case.
func TestTurnsOfProcessors(t *testing.T) {
	_, store, h := newTest(t)
	for processors, want := range map[int]int{1: 1, 2: 1, 8: 4} {
		a := New(Options{Config: h, Users: store, Logger: zap.NewNop(), Processors: processors})
		if got := a.verifier.hashing.limit; got != want {
			t.Errorf("%d of %d processors", got, processors)
		}
	}
}

// TestLinesForgetNobody compares a line with a list.
func TestLinesForgetNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l line
		var all []*ticket
		gone := func(gone *ticket) {
			i := slices.Index(all, gone)
			if i < 0 {
				t.Fatal("somebody who was not there")
			}
			all = slices.Delete(all, i, i+1)
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 0 && len(all) > 0:
				gone(l.next(rapid.Bool().Draw(t, "oldest")))
			case what == 1 && len(all) > 0:
				gone(l.last())
			case what == 2 && len(all) > 0:
				one := rapid.SampledFrom(all).Draw(t, "who")
				if !l.remove(one) || l.remove(one) {
					t.Fatal("removed never, or twice")
				}
				gone(one)
			default:
				one := &ticket{applicant: applicant{
					peer: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "peer"),
					name: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"),
				}}
				l.add(one)
				all = append(all, one)
			}
			if l.size != len(all) || (l.size == 0) != (len(l.peers) == 0) {
				t.Fatalf("%d of %d", l.size, len(all))
			}
		}
		for range len(all) {
			gone(l.next(false))
		}
		if l.next(false) != nil {
			t.Fatal("somebody is left")
		}
	})
}

// TestKnownNamesGoFirst has 140 connections with made-up names, and a user who logged
// in before and has a new password.
func TestKnownNamesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1, a.lockout)
		addUser(t, a, "alice", "apple", "")
		if got := who(t, a, "Authorization", basic("alice", "apple")); got != "default:alice readers" {
			t.Fatal(got)
		}
		addUser(t, a, "alice", "apricot", "")
		occupy(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 140 {
			wg.Go(func() {
				_, _ = a.Authenticate(request("Authorization", basic("u"+strconv.Itoa(i), "x")).WithContext(ctx))
			})
		}
		synctest.Wait()
		wg.Go(func() {
			if got := who(t, a, "Authorization", basic("alice", "apricot")); got != "default:alice readers" {
				t.Error(got)
			}
		})
		synctest.Wait()
		next := a.verifier.hashing.mu.proven
		if next.size != 1 || next.peers[0].names[0][0].name != "alice" {
			t.Errorf("%d known names wait", next.size)
		}
		a.verifier.hashing.release()
		cancel()
		wg.Wait()
	})
}

// TestGuessesAtOnce has 100 guesses at one password wait together: no more are
// looked at than one after the other would be.
func TestGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := newTest(t)
		a.verifier = newVerifier(1, a.lockout)
		occupy(t, a)
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]int{}
		for i := range 100 {
			wg.Go(func() {
				got := who(t, a, "Authorization", basic("adm", strconv.Itoa(i)))
				mu.Lock()
				defer mu.Unlock()
				answers[got]++
			})
		}
		synctest.Wait()
		a.verifier.hashing.release()
		wg.Wait()
		if n := answers[refused]; n < 5 || n > 6 || len(answers) != 2 { // one more may begin before the fifth is counted
			t.Error(answers)
		}
	})
}

// TestLeavingCountsAsFailure has a client that does not wait for the answer.
func TestLeavingCountsAsFailure(t *testing.T) {
	a, _, _ := newTest(t, "chttpd_auth", "iterations", "200000000")
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := a.Authenticate(request("Authorization", basic("nobody", "x")).WithContext(ctx)); err == nil {
			t.Error("in")
		}
		cancel()
	}
	_, err := a.Authenticate(request("Authorization", basic("nobody", "x")))
	wantFault(t, err, fault.Forbidden, "Account is temporarily locked due to multiple authentication failures")
}
