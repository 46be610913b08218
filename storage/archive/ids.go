package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// UUID names a database, a copy, a pack, a repository or a cluster.
type UUID [16]byte

// Sum is a SHA-256, or an HMAC that is made with it.
type Sum [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (u UUID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, u[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *UUID) UnmarshalText(text []byte) error { return decodeHex(u[:], text) }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error { return decodeHex(s[:], text) }

// decodeHex fills dst from lower-case digits, two for each byte.
func decodeHex(dst, text []byte) error {
	if len(text) != hex.EncodedLen(len(dst)) {
		return damaged("an id has another length")
	}
	if _, err := hex.Decode(dst, text); err != nil || !bytes.Equal(hex.AppendEncode(nil, dst), text) {
		return damaged("an id is not hexadecimal")
	}
	return nil
}

// RunID names a backup or a mark of prune. IDs that are made later come later in the order of
// their texts, if clocks are right.
type RunID struct {
	Seconds int64   // Unix time
	Nonce   [8]byte // random
}

const runTime = "20060102T150405Z"

// Time is when the run began.
func (id RunID) Time() time.Time { return time.Unix(id.Seconds, 0).UTC() }

// String implements fmt.Stringer.
func (id RunID) String() string {
	return id.Time().Format(runTime) + "-" + hex.EncodeToString(id.Nonce[:])
}

// MarshalText implements encoding.TextMarshaler.
func (id RunID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *RunID) UnmarshalText(text []byte) error {
	at, nonce, ok := bytes.Cut(text, []byte("-"))
	t, err := time.Parse(runTime, string(at))
	if !ok || err != nil {
		return damaged("an id of a run does not parse")
	}
	out := RunID{Seconds: t.Unix()}
	if err := decodeHex(out.Nonce[:], nonce); err != nil {
		return err
	}
	if out.String() != string(text) {
		return damaged("an id of a run does not parse")
	}
	*id = out
	return nil
}
