package auth

import (
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	"encoding/hex"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"divan/cluster/config"
	"divan/storage/fault"
)

func TestPBKDF2IsTheStandardOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prf := rapid.SampledFrom([]string{"sha", "sha224", "sha256", "sha384", "sha512"}).Draw(t, "prf")
		password, salt := rapid.String().Draw(t, "password"), rapid.String().Draw(t, "salt")
		n := rapid.IntRange(1, 50).Draw(t, "iterations")
		newHash := prfOf(prf)
		want, err := stdpbkdf2.Key(newHash, password, []byte(salt), n, newHash().Size())
		if err != nil {
			t.Skip("the standard library refuses the parameters")
		}
		got, err := pbkdf2(context.Background(), prf, password, salt, n)
		if err != nil || got != hex.EncodeToString(want) {
			t.Fatalf("got %s, %v, want %x", got, err, want)
		}
	})
}

func TestPBKDF2StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pbkdf2(ctx, "sha256", "p", "s", 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The values are CouchDB's own: golden auth/02 and its documentation.
func TestStoredForms(t *testing.T) {
	tests := []struct {
		name, password string
		hash           passwordHash
	}{
		{"simple", "cherry", passwordHash{
			scheme: schemeSimple, salt: "0123456789abcdef0123456789abcdef", key: "a46bd4798a459535a54bd684c61f556626357bbb",
		}},
		{"simple+pbkdf2", "cherry", passwordHash{
			scheme: schemeSimplePBKDF2, prf: "sha256", salt: "0123456789abcdef0123456789abcdef", iterations: 3,
			key: mustPBKDF2("a46bd4798a459535a54bd684c61f556626357bbb", "0123456789abcdef0123456789abcdef", 3),
		}},
		// RFC 6070: password, salt, 2 iterations
		{"pbkdf2 sha", "password", passwordHash{
			scheme: schemePBKDF2, prf: "sha", salt: "salt", iterations: 2, key: "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for password, want := range map[string]bool{tt.password: true, tt.password + "x": false, "": false} {
				got, err := tt.hash.matches(t.Context(), password)
				if got != want || err != nil {
					t.Errorf("%q matches: %v, %v", password, got, err)
				}
			}
		})
	}
}

func mustPBKDF2(password, salt string, n int) string {
	key, err := pbkdf2(context.Background(), "sha256", password, salt, n)
	if err != nil {
		panic(err)
	}
	return key
}

func TestHalfAHashMatchesNothing(t *testing.T) {
	for _, h := range []passwordHash{
		{},
		{scheme: schemePBKDF2, prf: "md5", salt: "s", iterations: 1},
		{scheme: schemePBKDF2, prf: "sha256", salt: "s"},
		{scheme: schemeSimple, salt: "s"},
	} {
		for _, password := range []string{"", "x"} {
			if ok, err := h.matches(t.Context(), password); ok || err != nil {
				t.Errorf("%+v matches %q: %v, %v", h, password, ok, err)
			}
		}
	}
}

func TestAdminForms(t *testing.T) {
	tests := []struct {
		value string
		ok    bool
		prf   string
		cost  int
	}{
		{"-hashed-6d3c30241ba0aaa4e16c6ea99224f915687ed8cd,7f4a3e05e0cbc6f48a0035e3508eef90", true, "", 0},
		{"-pbkdf2-43ecbd256a70a3a2f7de40d2374b6c3002918834,921a12f74df0c1052b3e562a23cd227f,10000", true, "sha", 10000},
		{"-pbkdf2:sha256-aa,bb,10", true, "sha256", 10},
		{"-pbkdf2:md5-aa,bb,10", false, "", 0},
		{"-pbkdf2:sha256-aa,bb", false, "", 0},
		{"-pbkdf2:sha256-zz,bb,10", false, "", 0},
		{"-pbkdf2:sha256-,bb,10", false, "", 0},
		{"-pbkdf2:sha256-aa,bb,0", false, "", 0},
		{"-pbkdf2:sha256-aa,bb,x", false, "", 0},
		{"-pbkdf2", false, "", 0},
		{"-hashed-", false, "", 0},
		{"-hashed-zz,s", false, "", 0},
		{"secret", false, "", 0},
		{"", false, "", 0},
	}
	for _, tt := range tests {
		h, ok := parseAdmin(tt.value)
		if ok != tt.ok || (ok && (h.prf != tt.prf || h.cost() != tt.cost)) {
			t.Errorf("%q: %+v, %v", tt.value, h, ok)
		}
	}
}

func TestHashAdminRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]string{nameSimple, namePBKDF2}).Draw(t, "scheme")
		prf := rapid.SampledFrom([]string{"sha", "sha256", "sha512"}).Draw(t, "prf")
		iterations := rapid.IntRange(1, 20).Draw(t, "iterations")
		password := rapid.String().Draw(t, "password")
		stored, err := HashAdmin(context.Background(), password, scheme, prf, iterations)
		if err != nil {
			t.Fatal(err)
		}
		if !config.IsHashed(stored) {
			t.Fatalf("the configuration would take %q for plain text", stored)
		}
		if !VerifyAdmin(context.Background(), stored, password) || VerifyAdmin(context.Background(), stored, password+"x") {
			t.Fatalf("%q does not verify", stored)
		}
	})
	_, err := HashAdmin(t.Context(), "x", "rot13", "sha256", 10)
	wantFault(t, err, fault.Forbidden, "Server cannot hash passwords at this time.")
}

func TestOutdated(t *testing.T) {
	now := hashing{scheme: namePBKDF2, prf: "sha256", iterations: 100}
	for _, tt := range []struct {
		h    passwordHash
		want bool
	}{
		{passwordHash{scheme: schemeSimple}, true},
		{passwordHash{scheme: schemeSimplePBKDF2, prf: "sha256", iterations: 100}, true},
		{passwordHash{scheme: schemePBKDF2, prf: "sha", iterations: 100}, true},
		{passwordHash{scheme: schemePBKDF2, prf: "sha256", iterations: 99}, true},
		{passwordHash{scheme: schemePBKDF2, prf: "sha256", iterations: 100}, false},
		{passwordHash{scheme: schemePBKDF2, prf: "sha256", iterations: 101}, false},
	} {
		if got := now.outdated(tt.h); got != tt.want {
			t.Errorf("%+v: %v", tt.h, got)
		}
	}
	if (hashing{scheme: nameSimple}).outdated(passwordHash{scheme: schemePBKDF2}) {
		t.Error("a strong hash would be replaced by a weak one")
	}
}

// TestIDsDiffer holds I4: what is verified is bound to the whole stored hash.
func TestIDsDiffer(t *testing.T) {
	h := passwordHash{scheme: schemePBKDF2, prf: "sha256", salt: "ab", iterations: 10, key: "cd"}
	seen := map[[32]byte]bool{h.sealed().id: true}
	for _, change := range []func(*passwordHash){
		func(h *passwordHash) { h.scheme = schemeSimplePBKDF2 },
		func(h *passwordHash) { h.prf = "sha" },
		func(h *passwordHash) { h.salt, h.key = "abc", "d" },
		func(h *passwordHash) { h.iterations = 11 },
		func(h *passwordHash) { h.key = "ce" },
	} {
		other := h
		change(&other)
		if id := other.sealed().id; seen[id] {
			t.Errorf("%+v has the id of another", other)
		} else {
			seen[id] = true
		}
	}
}

// processorTime returns that of the thread, which a busy machine does not change.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// TestWrongPasswordsCostTheSame holds I2 from below: for every stored hash a refusal takes
// at least about as long as the configured hash.
func TestWrongPasswordsCostTheSame(t *testing.T) {
	floor := hashing{scheme: namePBKDF2, prf: "sha256", iterations: 100_000}
	s := &settings{passwords: passwordPolicy{hashing: floor}}
	v := newVerifier(1, newLockout(1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := func(h passwordHash) time.Duration {
		h = h.sealed()
		start := processorTime(t)
		if ok, err := v.compare(t.Context(), &try{credential: credential{password: "wrong"}, hash: &h, from: s}); ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		return processorTime(t) - start
	}
	full := took(passwordHash{scheme: schemePBKDF2, prf: "sha256", salt: "s", iterations: 100_000, key: "aa"})
	for name, h := range map[string]passwordHash{
		"nobody": {salt: "s"},
		"simple": {scheme: schemeSimple, salt: "s", key: "aa"},
		"weak":   {scheme: schemePBKDF2, prf: "sha256", salt: "s", iterations: 10, key: "aa"},
	} {
		if d := took(h); d < full/4 {
			t.Errorf("%s was refused in %v, a full hash takes %v", name, d, full)
		}
	}
}
