package core

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"divan/cluster/config"
)

// uuidSource makes ids (api.md section 4.1). It is safe for concurrent use.
type uuidSource struct {
	mu struct {
		sync.Mutex
		prefix [13]byte // sequential: 26 hexadecimal digits
		next   uint32   // sequential: the counter of the next id
		last   uint64   // utc_*: microseconds of the last id
	}
}

// Bounds of the counter of sequential ids: six hexadecimal digits, as far as
// CouchDB lets it run.
const (
	maxCounter = 0xfff000
	maxStep    = 0xffe
)

// NewID returns one id by the configured algorithm.
func (c *Call) NewID() string { return c.API.uuids.next(c.Config) }

// next returns one id.
func (s *uuidSource) next(cfg *config.Snapshot) string {
	switch cfg.UUIDs.Algorithm {
	case "random":
		return RandomHex(16)
	case "utc_random":
		return s.utc() + RandomHex(9)
	case "utc_id":
		return s.utc() + cfg.UUIDs.UTCIDSuffix
	case "uuid_v7":
		format, _ := cfg.Get("uuids", "format")
		return formatUUID(versionSeven(time.Now()), format)
	default:
		return s.sequential()
	}
}

// sequential returns an id that is close to the one before: 26 random digits
// that stay, then a counter that grows by random steps.
func (s *uuidSource) sequential() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.next == 0 || s.mu.next >= maxCounter {
		rand.Read(s.mu.prefix[:]) // never fails, says its documentation
		s.mu.next = step()
	}
	var id [16]byte
	copy(id[:], s.mu.prefix[:])
	id[13], id[14], id[15] = byte(s.mu.next>>16), byte(s.mu.next>>8), byte(s.mu.next)
	s.mu.next += step()
	return hex.EncodeToString(id[:])
}

func step() uint32 { return 1 + mathrand.Uint32N(maxStep) }

// utc returns 14 hexadecimal digits of the microseconds since 1970, never the
// same twice.
func (s *uuidSource) utc() string {
	now := uint64(time.Now().UnixMicro())
	s.mu.Lock()
	if now <= s.mu.last {
		now = s.mu.last + 1
	}
	s.mu.last = now
	s.mu.Unlock()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], now)
	return hex.EncodeToString(b[1:])
}

// RandomHex returns n random bytes in hexadecimal.
func RandomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// versionSeven returns a UUID of RFC 9562 version 7: 48 bits of milliseconds,
// 12 bits of the fraction of the millisecond, and random bits.
func versionSeven(now time.Time) [16]byte {
	var u [16]byte
	rand.Read(u[8:])
	micros := now.UnixMicro()
	fraction := uint16(micros % 1000 * 4096 / 1000)
	binary.BigEndian.PutUint64(u[:8], uint64(micros/1000)<<16|uint64(fraction))
	u[6] = 0x70 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	return u
}

// formatUUID writes a UUID: base_36 as 25 digits and letters that sort like the
// number, rfc9562 with hyphens, anything else as 32 hexadecimal digits.
func formatUUID(u [16]byte, format string) string {
	text := hex.EncodeToString(u[:])
	switch format {
	case "base_36":
		const width = 25 // 36^25 > 2^128
		digits := new(big.Int).SetBytes(u[:]).Text(36)
		for len(digits) < width {
			digits = "0" + digits
		}
		return digits
	case "rfc9562":
		return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
	}
	return text
}
