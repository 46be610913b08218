package auth

import (
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// jwtKey is one entry of [jwt_keys]. Exactly one of the fields is set.
type jwtKey struct {
	key     any    // []byte, *rsa.PublicKey or *ecdsa.PublicKey
	refusal string // why the entry is no key: told to a client that uses it
}

// keyKind returns the prefix in [jwt_keys] of the keys that an algorithm uses,
// empty for an algorithm that is not accepted. There is no "none", and no PS.
func keyKind(alg string) string {
	switch alg {
	case "HS256", "HS384", "HS512":
		return "hmac"
	case "RS256", "RS384", "RS512":
		return "rsa"
	case "ES256", "ES384", "ES512":
		return "ec"
	}
	return ""
}

// parseKeys reads the section: "hmac:<kid>" is base64, "rsa:<kid>" and
// "ec:<kid>" are PEM with "\n" for the ends of lines.
func parseKeys(section map[string]string) map[string]jwtKey {
	keys := make(map[string]jwtKey, len(section))
	for name, text := range section {
		kind, _, _ := strings.Cut(name, ":")
		keys[name] = parseKey(kind, text)
	}
	return keys
}

func parseKey(kind, text string) jwtKey {
	pem := []byte(strings.ReplaceAll(text, `\n`, "\n"))
	switch kind {
	case "hmac":
		secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil || len(secret) == 0 {
			return jwtKey{refusal: "Not a valid key"}
		}
		return jwtKey{key: secret}
	case "rsa":
		key, err := jwt.ParseRSAPublicKeyFromPEM(pem)
		if err != nil {
			return jwtKey{refusal: pemRefusal(err, "not an RSA public key")}
		}
		return jwtKey{key: key}
	case "ec":
		key, err := jwt.ParseECPublicKeyFromPEM(pem)
		if err != nil {
			return jwtKey{refusal: pemRefusal(err, "not an EC public key")}
		}
		return jwtKey{key: key}
	}
	return jwtKey{refusal: "Unknown kid"}
}

func pemRefusal(err error, other string) string {
	if errors.Is(err, jwt.ErrKeyMustBePEMEncoded) {
		return "Not a valid key"
	}
	return other
}

// verify checks the signature of a token with the key of that kid, which is
// looked up by the kind of the algorithm: a public key can never be taken for
// an HMAC secret.
func (r *jwtRule) verify(alg, kid, signed string, signature []byte) error {
	k, ok := r.keys[keyKind(alg)+":"+kid]
	if !ok {
		return errToken("Unknown kid")
	}
	if k.key == nil {
		return errToken(k.refusal)
	}
	method := jwt.GetSigningMethod(alg)
	refusal := "Bad signature in authentication token"
	if keyKind(alg) == "hmac" {
		refusal = "Bad HMAC in authentication token"
	}
	if ec, ok := method.(*jwt.SigningMethodECDSA); ok {
		key, ok := k.key.(*ecdsa.PublicKey)
		if !ok || key.Curve.Params().BitSize != ec.CurveBits {
			return errToken(refusal) // a key of another curve than the algorithm's
		}
		if verifyDER(ec, key, signed, signature) {
			return nil
		}
	}
	if method.Verify(signed, signature, k.key) != nil {
		return errToken(refusal)
	}
	return nil
}

// verifyDER checks an ECDSA signature in the DER form of X.509, which CouchDB makes and
// takes; RFC 7518 has the two numbers one after the other.
func verifyDER(method *jwt.SigningMethodECDSA, key *ecdsa.PublicKey, signed string, signature []byte) bool {
	h := method.Hash.New()
	h.Write([]byte(signed))
	return ecdsa.VerifyASN1(key, h.Sum(nil), signature)
}
