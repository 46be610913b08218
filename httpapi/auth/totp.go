package auth

import (
	"crypto/hmac"
	"crypto/sha1" // the algorithm of RFC 6238 that most authenticators use
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"strconv"
	"strings"
	"time"

	"divan/storage/doc"
)

// totp is the second factor of a user (RFC 6238, semantics.md section 9.2):
// member "totp" of the user document, {key, algorithm, length}.
type totp struct {
	key     []byte
	newHash func() hash.Hash
	digits  int
}

const (
	totpPeriod = 30 // seconds
	totpDigits = 6  // default of "length"
)

// parseTOTP reads the member. A second factor that cannot be understood is
// never satisfied: the zero value is returned.
func parseTOTP(value []byte) totp {
	t := totp{newHash: sha1.New, digits: totpDigits}
	var key string
	bad := false
	err := doc.EachMember(value, func(name string, v []byte) error {
		text, isText := doc.Unquote(v)
		switch name {
		case "key":
			key = text
		case "algorithm":
			t.newHash = totpHash(text)
			bad = bad || !isText
		case "length":
			n, err := strconv.Atoi(string(v))
			if err != nil || n < 6 || n > 9 {
				bad = true
			}
			t.digits = n
		}
		return nil
	})
	secret, keyErr := base32.StdEncoding.WithPadding(base32.NoPadding).
		DecodeString(strings.TrimRight(strings.ToUpper(key), "="))
	if err != nil || keyErr != nil || bad || len(secret) == 0 || t.newHash == nil {
		return totp{}
	}
	t.key = secret
	return t
}

func totpHash(name string) func() hash.Hash {
	switch name {
	case "sha", "sha1":
		return sha1.New
	case "sha256":
		return sha256.New
	case "sha512":
		return sha512.New
	}
	return nil
}

// step is the number of the period that now lies in.
func (t *totp) step(now time.Time) uint64 { return uint64(now.Unix()) / totpPeriod }

// check returns the period that token belongs to: the present one, the one
// before or the one after.
func (t *totp) check(token string, now time.Time) (step uint64, ok bool) {
	if len(t.key) == 0 {
		return 0, false
	}
	present := t.step(now)
	for s := present - 1; s <= present+1; s++ { // all three, always (I1)
		if subtle.ConstantTimeCompare([]byte(t.token(s)), []byte(token)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// token is the value of a period (RFC 4226 section 5.3).
func (t *totp) token(step uint64) string {
	mac := hmac.New(t.newHash, t.key)
	var msg [8]byte
	binary.BigEndian.PutUint64(msg[:], step)
	mac.Write(msg[:])
	sum := mac.Sum(nil)
	off := sum[len(sum)-1] & 0xf
	n := uint64(binary.BigEndian.Uint32(sum[off:]) & 0x7fffffff)
	limit := uint64(1)
	for range t.digits {
		limit *= 10
	}
	text := strconv.FormatUint(n%limit, 10)
	return strings.Repeat("0", t.digits-len(text)) + text
}
