package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"divan/storage/fault"
)

// adminSection holds the administrators. Its values are stored forms of
// passwords; plain text from a file or the environment never reaches a
// Snapshot.
const adminSection = "admins"

// IsHashed reports whether a value of section [admins] is a stored form rather
// than plain text (semantics.md 9.2).
func IsHashed(v string) bool {
	return strings.HasPrefix(v, "-pbkdf2-") || strings.HasPrefix(v, "-pbkdf2:") || strings.HasPrefix(v, "-hashed-")
}

// HashAdmins replaces each plain-text administrator from files, environment
// and flags by its stored form. known are stored forms of earlier runs: where
// one fits the plain text it is kept, so that sessions, which hang on its
// salt, outlive a restart. It returns the stored forms in use that known lacks,
// which the caller should keep and pass as known next time. It is as slow as
// one hash for each plain-text administrator.
func (h *Holder) HashAdmins(known map[string]string) (fresh map[string]string, err error) {
	for name, plain := range h.pendingAdmins() {
		if h.opts.Hash == nil || h.opts.Verify == nil {
			return nil, fmt.Errorf("hash the password of administrator %q: no hash function", name)
		}
		stored := h.knownAdmin(name, known)
		if stored == "" || !h.opts.Verify(stored, plain) {
			if stored, err = h.opts.Hash(plain); err != nil {
				return nil, fmt.Errorf("hash the password of administrator %q: %w", name, err)
			}
		}
		h.putHashedAdmin(name, plain, stored)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh = maps.Clone(h.mu.known)
	maps.DeleteFunc(fresh, func(name, stored string) bool { return known[name] == stored })
	return fresh, nil
}

// pendingAdmins returns the administrators that have a plain-text value in
// force.
func (h *Holder) pendingAdmins() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	values, _ := h.valuesLocked()
	out := values[adminSection]
	maps.DeleteFunc(out, func(_, v string) bool { return IsHashed(v) || v == "" })
	return out
}

// valuesLocked lays the layers over one another. Administrators that are given at the start of the
// node, in files, environment or flags, count when otherwise there would be none: what hides them
// in stronger layers was written by an administrator, and no administrator would be left to take it
// back. fallback tells that they do.
func (h *Holder) valuesLocked() (values Values, fallback bool) {
	values = merge(h.mu.layers[:]...)
	for _, v := range values[adminSection] {
		if v != "" {
			return values, false
		}
	}
	given := merge(h.mu.layers[Files:ClusterWide]...)[adminSection]
	if len(given) == 0 {
		return values, false
	}
	values[adminSection] = given
	return values, true
}

// LastAdmin reports whether no administrator of the server is left once the administrator name is
// gone. usable tells of a stored form whether a password can fit it. What is volatile counts as
// long as nothing is to be kept: it ends with the next reload.
func (h *Holder) LastAdmin(name string, volatile bool, usable func(stored string) bool) bool {
	able := func(v string) bool { return v != "" && (!IsHashed(v) || usable(v)) }
	h.mu.Lock()
	defer h.mu.Unlock()
	values, _ := h.valuesLocked()
	if !able(values[adminSection][name]) {
		return false
	}
	others := values
	if !volatile {
		others = merge(h.mu.layers[:Volatile]...)
	}
	for other, v := range others[adminSection] {
		if other != name && able(v) {
			return false
		}
	}
	return true
}

// HasAdmins reports whether there is an administrator, also one whose password
// is not hashed yet, who cannot log in before.
func (h *Holder) HasAdmins() bool { return len(h.Load().Admins) > 0 || len(h.pendingAdmins()) > 0 }

func (h *Holder) knownAdmin(name string, known map[string]string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.mu.known[name]; v != "" {
		return v
	}
	return known[name]
}

// putHashedAdmin puts the stored form in the place of the plain text, in every
// layer that has it.
func (h *Holder) putHashedAdmin(name, plain, stored string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.known[name] = stored
	for i, l := range slices.Clone(h.mu.layers[:]) {
		if v, ok := l.Set[adminSection][name]; ok && strings.TrimSpace(v) == plain {
			next := l.Clone()
			next.Put(adminSection, name, stored)
			h.mu.layers[i] = next
		}
	}
	h.rebuildLocked()
}

// StoredForm returns a value as it is to be kept: hashed when it is the plain
// password of an administrator, unchanged otherwise.
func (h *Holder) StoredForm(section, value string) (string, error) {
	switch {
	case section != adminSection || IsHashed(value):
		return value, nil
	case value == "":
		return "", fault.New(fault.BadRequest, "an administrator needs a password")
	case h.opts.Hash == nil:
		return "", errors.New("hash the password of an administrator: no hash function")
	}
	stored, err := h.opts.Hash(value)
	if err != nil {
		return "", fmt.Errorf("hash the password of an administrator: %w", err)
	}
	return stored, nil
}
