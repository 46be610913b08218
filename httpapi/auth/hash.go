package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // hashes that CouchDB made in former times are still verified
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"

	"divan/storage/fault"
)

// scheme tells how a stored password hash was made.
type scheme uint8

const (
	schemeNone         scheme = iota // no login succeeds with it
	schemeSimple                     // SHA-1 of password and salt
	schemePBKDF2                     // PBKDF2 of the password
	schemeSimplePBKDF2               // PBKDF2 of the hex text of the simple hash
)

// Names of the schemes in user documents and in [chttpd_auth] password_scheme.
const (
	nameSimple       = "simple"
	namePBKDF2       = "pbkdf2"
	nameSimplePBKDF2 = "simple+pbkdf2"
)

// passwordHash is a password as it is stored, in a user document or in the
// [admins] section (semantics.md section 9.2).
type passwordHash struct {
	scheme     scheme
	prf        string // name of the hash function below PBKDF2, see prfOf
	salt       string // as text: it is hashed as it is written
	iterations int
	key        string // lower-case hex
	// id is different for any two different hashes (I4).
	id [sha256.Size]byte
}

// sealed returns h with its id.
func (h passwordHash) sealed() passwordHash {
	b := make([]byte, 0, 192)
	b = append(b, byte(h.scheme))
	for _, s := range []string{h.prf, h.salt, h.key} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(h.iterations))
	h.id = sha256.Sum256(b)
	return h
}

// prfOf returns the hash function of a name as CouchDB writes it, nil for an
// unknown one.
func prfOf(name string) func() hash.Hash {
	switch name {
	case "sha":
		return sha1.New
	case "sha224":
		return sha256.New224
	case "sha256":
		return sha256.New
	case "sha384":
		return sha512.New384
	case "sha512":
		return sha512.New
	}
	return nil
}

// cost is the number of PBKDF2 iterations that comparing with h takes.
func (h passwordHash) cost() int {
	if h.scheme == schemePBKDF2 || h.scheme == schemeSimplePBKDF2 {
		return h.iterations
	}
	return 0
}

// matches reports whether password is the one that was stored. It takes as
// long as the hash's iterations do, or until ctx ends.
func (h passwordHash) matches(ctx context.Context, password string) (bool, error) {
	var got string
	var err error
	switch h.scheme {
	case schemeSimple:
		got = simpleHash(password, h.salt)
	case schemePBKDF2:
		got, err = pbkdf2(ctx, h.prf, password, h.salt, h.iterations)
	case schemeSimplePBKDF2:
		got, err = pbkdf2(ctx, h.prf, simpleHash(password, h.salt), h.salt, h.iterations)
	case schemeNone:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if got == "" { // an unknown hash function: an empty key must not match it
		return false, nil
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(h.key)) == 1, nil
}

// simpleHash is the scheme of CouchDB 1.0 to 1.2.
func simpleHash(password, salt string) string {
	sum := sha1.Sum([]byte(password + salt)) // see the import
	return hex.EncodeToString(sum[:])
}

// pbkdf2Step is how many iterations run between two looks at the context,
// about 3 ms.
const pbkdf2Step = 16384

// pbkdf2 derives a key as long as the hash function's output and returns it as hex, empty
// for an unknown hash function. It is the first block of RFC 8018 section 5.2, which is
// all that CouchDB ever uses; the standard library's cannot be stopped, and the number of
// iterations of a user document is chosen by its writer.
func pbkdf2(ctx context.Context, prf, password, salt string, iterations int) (string, error) {
	newHash := prfOf(prf)
	if newHash == nil || iterations < 1 {
		return "", nil
	}
	mac := hmac.New(newHash, []byte(password))
	mac.Write([]byte(salt))
	mac.Write([]byte{0, 0, 0, 1}) // number of the block
	u := mac.Sum(nil)
	key := append([]byte(nil), u...)
	for i := 1; i < iterations; i++ {
		if i%pbkdf2Step == 0 && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		mac.Reset()
		mac.Write(u)
		u = mac.Sum(u[:0])
		subtle.XORBytes(key, key, u)
	}
	return hex.EncodeToString(key), nil
}

// newSalt returns 32 hexadecimal digits.
func newSalt() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

// hashing is how new passwords are stored: [chttpd_auth] password_scheme,
// pbkdf2_prf and iterations.
type hashing struct {
	scheme     string
	prf        string
	iterations int
}

// errCannotHash is the refusal when the settings above make no sense.
func errCannotHash() error {
	return fault.New(fault.Forbidden, "Server cannot hash passwords at this time.")
}

// hash makes the stored form of a password. An empty salt stands for a new
// one.
func (s hashing) hash(ctx context.Context, password, salt string) (passwordHash, error) {
	if salt == "" {
		salt = newSalt()
	}
	h := passwordHash{salt: salt}
	switch s.scheme {
	case nameSimple:
		h.scheme, h.key = schemeSimple, simpleHash(password, salt)
	case namePBKDF2:
		if prfOf(s.prf) == nil || s.iterations < 1 {
			return passwordHash{}, errCannotHash()
		}
		key, err := pbkdf2(ctx, s.prf, password, salt, s.iterations)
		if err != nil {
			return passwordHash{}, err
		}
		h.scheme, h.prf, h.iterations, h.key = schemePBKDF2, s.prf, s.iterations, key
	default:
		return passwordHash{}, errCannotHash()
	}
	return h.sealed(), nil
}

// outdated reports whether h is weaker than what s would make today.
func (s hashing) outdated(h passwordHash) bool {
	if s.scheme != namePBKDF2 {
		return false
	}
	return h.scheme != schemePBKDF2 || h.prf != s.prf || h.iterations < s.iterations
}

// HashAdmin turns the plain password of a server administrator into the text
// that is kept in the [admins] section: "-pbkdf2:<prf>-<key>,<salt>,<n>", or
// "-hashed-<sha1>,<salt>" when scheme is "simple". scheme, prf and iterations
// are password_scheme, pbkdf2_prf and iterations of [chttpd_auth]. It is slow
// on purpose. fault.Forbidden: the settings make no sense.
func HashAdmin(ctx context.Context, password, scheme, prf string, iterations int) (string, error) {
	h, err := hashing{scheme: scheme, prf: prf, iterations: iterations}.hash(ctx, password, "")
	if err != nil {
		return "", err
	}
	if h.scheme == schemeSimple {
		return "-hashed-" + h.key + "," + h.salt, nil
	}
	return "-pbkdf2:" + h.prf + "-" + h.key + "," + h.salt + "," + strconv.Itoa(h.iterations), nil
}

// VerifyAdmin reports whether stored, a value of the [admins] section, is a
// hash of password. It is as slow as the hash.
func VerifyAdmin(ctx context.Context, stored, password string) bool {
	h, ok := parseAdmin(stored)
	if !ok {
		return false
	}
	ok, err := h.matches(ctx, password)
	return ok && err == nil
}

// ValidAdmin reports whether stored, a value of the [admins] section, is the hash of some
// password: no administrator could ever log in with another value.
func ValidAdmin(stored string) bool {
	h, ok := parseAdmin(stored)
	if !ok {
		return false
	}
	size := sha1.Size // of scheme simple
	if h.scheme == schemePBKDF2 {
		size = prfOf(h.prf)().Size()
	}
	return len(h.key) == hex.EncodedLen(size)
}

// parseAdmin reads a value of the [admins] section.
func parseAdmin(value string) (passwordHash, bool) {
	if rest, ok := strings.CutPrefix(value, "-hashed-"); ok {
		key, salt, ok := strings.Cut(rest, ",")
		return passwordHash{scheme: schemeSimple, salt: salt, key: strings.ToLower(key)}.sealed(), ok && isHex(key)
	}
	rest, ok := strings.CutPrefix(value, "-pbkdf2")
	if !ok {
		return passwordHash{}, false
	}
	prf := "sha"
	if named, ok := strings.CutPrefix(rest, ":"); ok {
		if prf, rest, ok = strings.Cut(named, "-"); !ok || prfOf(prf) == nil {
			return passwordHash{}, false
		}
	} else if rest, ok = strings.CutPrefix(rest, "-"); !ok {
		return passwordHash{}, false
	}
	parts := strings.Split(rest, ",")
	if len(parts) != 3 || !isHex(parts[0]) {
		return passwordHash{}, false
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 1 {
		return passwordHash{}, false
	}
	return passwordHash{
		scheme: schemePBKDF2, prf: prf, salt: parts[1], iterations: n, key: strings.ToLower(parts[0]),
	}.sealed(), true
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && s != ""
}
