package config

import (
	"maps"
	"slices"
	"testing"
)

// Without any other administrator those count that files, environment or flags
// give, although stronger layers hide them.
func TestLentAdmins(t *testing.T) {
	hash := func(p string) (string, error) { return "-hashed-" + p, nil }
	verify := func(stored, p string) bool { return stored == "-hashed-"+p }
	file := writeFiles(t, map[string]string{"a.ini": "[admins]\nfile = pear\n"})
	for name, o := range map[string]Options{
		"root": {Environ: []string{"COUCHDB_USER=root", "COUCHDB_PASSWORD=apple"}},
		"flag": {Flags: Values{"admins": {"flag": "plum"}}},
		"file": {Files: []string{file}},
	} {
		o.Hash, o.Verify = hash, verify
		h := newHolder(t, o)
		admins := func() []string {
			if _, err := h.HashAdmins(nil); err != nil {
				t.Fatal(err)
			}
			return slices.Sorted(maps.Keys(h.Load().Admins))
		}
		var hidden, other Layer
		hidden.Hide("admins", name)
		h.SetReplicated(Layer{}, hidden, Layer{})
		if got := admins(); !slices.Equal(got, []string{name}) || !h.HasAdmins() {
			t.Errorf("%s is hidden, there is nobody else: %v", name, got)
		}
		other.Hide("admins", name)
		other.Put("admins", "anna", "-hashed-x")
		h.SetReplicated(Layer{}, other, Layer{})
		if got := admins(); !slices.Equal(got, []string{"anna"}) {
			t.Errorf("%s is hidden, there is anna: %v", name, got)
		}
	}
	h := newHolder(t, Options{})
	if h.HasAdmins() || len(h.Load().Admins) != 0 {
		t.Error("an administrator that nobody gave")
	}
}

func TestLastAdmin(t *testing.T) {
	usable := func(stored string) bool { return stored != "-hashed-broken" }
	h := newHolder(t, Options{Flags: Values{"admins": {"root": "apple"}}})
	check := func(what, name string, volatile, want bool) {
		t.Helper()
		if got := h.LastAdmin(name, volatile, usable); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	check("one that is not hashed yet", "root", false, true)
	check("one that is none", "nobody", false, false)
	var wide Layer
	wide.Put("admins", "anna", "-hashed-broken")
	h.SetReplicated(Layer{}, wide, Layer{})
	check("beside one that cannot log in", "root", false, true)
	check("one that cannot log in", "anna", false, false)
	h.SetVolatile("admins", "eve", "-hashed-x")
	check("beside one that ends with the next reload", "root", false, true)
	check("for as long as that one is there", "root", true, false)
	wide = wide.Clone()
	wide.Put("admins", "bob", "-hashed-x")
	h.SetReplicated(Layer{}, wide, Layer{})
	check("beside another", "root", false, false)
	check("the other", "bob", false, false)
}
