package archive

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// The JSON objects end in members that say what is before them: the SHA-256, and in those that
// only the cluster may make an HMAC, which is over the SHA-256 as well. So nothing has to be put
// into a canonical form to be verified.
const (
	sumMember = `,"sha256":"`
	macMember = `,"hmac":"`
	sealedEnd = "}\n"
)

// sealer says how objects of a sort are sealed.
type sealer struct {
	max     int // bytes
	purpose string
	key     *Key // nil: without HMAC, or not to be verified
	mac     bool // there is an HMAC
}

// seal returns v with its sum and HMAC.
func (s *sealer) seal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1] // the brace
	sum := sha256.Sum256(text)
	text = append(hex.AppendEncode(append(text, sumMember...), sum[:]), '"')
	if s.mac {
		h := s.key.mac(s.purpose)
		_, _ = h.Write(text) // never fails
		text = append(hex.AppendEncode(append(text, macMember...), h.Sum(nil)), '"')
	}
	text = append(text, sealedEnd...)
	if len(text) > s.max {
		return nil, fmt.Errorf("write an object: %d bytes are too many", len(text))
	}
	return text, nil
}

// open verifies what seal returned, and decodes it.
func (s *sealer) open(text []byte, v any) error {
	front, ok := bytes.CutSuffix(text, []byte(sealedEnd))
	if !ok || len(text) > s.max {
		return damaged("an object is cut or too long")
	}
	if s.mac {
		var mac Sum
		if front, mac, ok = cutMember(front, macMember); !ok {
			return damaged("an object has no HMAC")
		}
		if s.key != nil {
			h := s.key.mac(s.purpose)
			_, _ = h.Write(front) // never fails
			if !hmac.Equal(h.Sum(nil), mac[:]) {
				return damaged("an object was not written with the key of the repository")
			}
		}
	}
	front, sum, ok := cutMember(front, sumMember)
	if !ok || sha256.Sum256(front) != sum {
		return damaged("the sum of an object is another one")
	}
	if err := json.Unmarshal(append(bytes.Clone(front), '}'), v); err != nil {
		return damaged("an object does not decode")
	}
	return nil
}

// cutMember cuts a last member with a sum off.
func cutMember(text []byte, member string) (front []byte, sum Sum, ok bool) {
	at := len(text) - len(member) - hex.EncodedLen(len(sum)) - 1
	if at < 0 || text[len(text)-1] != '"' || string(text[at:at+len(member)]) != member {
		return nil, Sum{}, false
	}
	err := sum.UnmarshalText(text[at+len(member) : len(text)-1])
	return text[:at], sum, err == nil
}
