package auth

import (
	"testing"
	"time"
)

// The values are those of RFC 6238, appendix B.
func TestTOTPVectors(t *testing.T) {
	const (
		key20 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
		key32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA===="
		key64 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA="
	)
	tests := []struct {
		value string
		at    int64
		token string
	}{
		{`{"key":"` + key20 + `","length":8}`, 59, "94287082"},
		{`{"key":"` + key20 + `","algorithm":"sha","length":8}`, 1111111109, "07081804"},
		{`{"key":"` + key32 + `","algorithm":"sha256","length":8}`, 59, "46119246"},
		{`{"key":"` + key32 + `","algorithm":"sha256","length":8}`, 20000000000, "77737706"},
		{`{"key":"` + key64 + `","algorithm":"sha512","length":8}`, 59, "90693936"},
		{`{"key":"` + key20 + `"}`, 59, "287082"},
	}
	for _, tt := range tests {
		f := parseTOTP([]byte(tt.value))
		for shift, want := range map[int64]bool{-60: false, -30: true, 0: true, 30: true, 60: false} {
			if tt.at+shift < 30 {
				continue
			}
			if _, ok := f.check(tt.token, time.Unix(tt.at+shift, 0)); ok != want {
				t.Errorf("%s at %d%+d: %v", tt.value, tt.at, shift, ok)
			}
		}
	}
}

func TestBrokenSecondFactorIsNeverSatisfied(t *testing.T) {
	for _, value := range []string{
		`null`, `5`, `"x"`, `[]`, `{}`, `{"key":""}`, `{"key":5}`, `{"key":"not base 32!"}`,
		`{"key":"GEZDGNBVGY3TQOJQ","algorithm":"md5"}`, `{"key":"GEZDGNBVGY3TQOJQ","algorithm":5}`,
		`{"key":"GEZDGNBVGY3TQOJQ","length":0}`, `{"key":"GEZDGNBVGY3TQOJQ","length":99}`, `{"key":"GEZDGNBVGY3TQOJQ","length":"6"}`,
	} {
		f := parseTOTP([]byte(value))
		if _, ok := f.check("", time.Now()); ok || len(f.key) != 0 {
			t.Errorf("%s can be satisfied", value)
		}
	}
}
