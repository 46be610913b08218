package archive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Key is the key of a repository. Each purpose has a key of its own, derived from it: names of
// contents are public, and clients choose the contents, so with one key for all the name of an
// attachment that looks like a header would be the HMAC of that header.
type Key [32]byte

const (
	purposeContent = "divan content"
	purposeHeader  = "divan header"
	purposeMark    = "divan mark"
)

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error { return decodeHex(k[:], text) }

func (k *Key) mac(purpose string) hash.Hash {
	h := hmac.New(sha256.New, k[:])
	_, _ = h.Write([]byte(purpose)) // never fails
	return hmac.New(sha256.New, h.Sum(nil))
}

// ContentName names a content while its bytes pass by.
type ContentName struct{ h hash.Hash }

// NewContentName returns a ContentName without bytes.
func NewContentName(k *Key) *ContentName { return &ContentName{k.mac(purposeContent)} }

// Write implements io.Writer; it never fails.
func (c *ContentName) Write(b []byte) (int, error) { return c.h.Write(b) }

// Name is the name of the content that was written.
func (c *ContentName) Name() Name {
	n := Name{Class: ClassContent}
	c.h.Sum(n.ID[:0])
	return n
}
