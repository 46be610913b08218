package zlib

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func compress(t *testing.T, level int, pieces ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		if n, err := w.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBytes holds short streams to CouchDB's, header and all.
func TestBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level        int
		in, hex, md5 string
	}{
		{8, "hello hello hello", "1f8b0800000000000003cb48cdc9c957c84090008088f9e511000000", "EGZM0DR7tfylLvvZCXP1ug=="},
		{1, "hello hello hello", "1f8b0800000000000403cb48cdc9c957c84090008088f9e511000000", ""},
		{9, "hello hello hello", "1f8b0800000000000203cb48cdc9c957c84090008088f9e511000000", ""},
		{8, "", "1f8b080000000000000303000000000000000000", "cCkGbCesb17xjWYNV0GXmg=="},
	} {
		got := compress(t, c.level, []byte(c.in))
		sum := md5.Sum(got)
		if hex.EncodeToString(got) != c.hex || c.md5 != "" && base64.StdEncoding.EncodeToString(sum[:]) != c.md5 {
			t.Errorf("level %d of %q: %x, md5 %x", c.level, c.in, got, sum)
		}
	}
}

// input is the same on every machine: words, with noise in between.
func input(size int) []byte {
	next, out := uint32(size)|1, make([]byte, 0, size+64)
	for len(out) < size {
		next = next*1664525 + 1013904223
		switch k := next >> 16; k % 7 {
		case 0:
			out = append(out, byte(k>>3), byte(k>>5), byte(k>>8))
		default:
			out = append(out, "the quick brown fox jumps over the lazy dog, and back again;"[k%31:][:1+k%29]...)
		}
	}
	return out[:size]
}

// TestDigests holds every level to the MD5s of what zlib 1.2.13 made of the same
// inputs, and checks that it does not matter how the input comes.
func TestDigests(t *testing.T) {
	t.Parallel()
	for size, want := range map[int][BestCompression]string{
		1: {
			"e33e7a8823cf5699eee3470e2a0af457", "9aa20489817ccd29f9b8ac098a4474bb", "9aa20489817ccd29f9b8ac098a4474bb",
			"9aa20489817ccd29f9b8ac098a4474bb", "9aa20489817ccd29f9b8ac098a4474bb", "9aa20489817ccd29f9b8ac098a4474bb",
			"9aa20489817ccd29f9b8ac098a4474bb", "9aa20489817ccd29f9b8ac098a4474bb", "1731d7ec6d9d2b818432865de028d5f6",
		},
		100: {
			"f4e85ea1c3b479f0c4de8f30fc8b23f4", "a3288b0dffe43bc581da5c51a606dcb5", "a3288b0dffe43bc581da5c51a606dcb5",
			"a3288b0dffe43bc581da5c51a606dcb5", "a3288b0dffe43bc581da5c51a606dcb5", "a3288b0dffe43bc581da5c51a606dcb5",
			"f5984f530048d250477d8cbc3b7d8545", "f5984f530048d250477d8cbc3b7d8545", "724f221921d714b401d4cf6fa224c97b",
		},
		5000: {
			"8fc9dbed81f01f54e9a9a60148307797", "bc4055439a5af25c3fa48726b3df17a4", "dae6bbaa2b9ea893bbc14f3f2e10a17d",
			"7571fb45d00c5102d6da64c3935a5c6c", "17e425be8a90e9198bccc5cc26b6a7cb", "96891b38c577e54fc076842a2d5615ff",
			"6a1677a67f100e08509954ef72b5d9ec", "6a1677a67f100e08509954ef72b5d9ec", "68a9bf9dd6b10872f37ab25274e2c436",
		},
		70000: {
			"7ae20fd0476ac562dec530717afe067f", "1159b8be94caec658ce7c36a5647aeb1", "d160833c7ef6b92b9d2a90f43ae01c3a",
			"db44b3590d554424018df7547da93b02", "b14070f73ffb421ec5d5fd12b856c675", "31d2b56819adc973ea4e84371a540f41",
			"8c67835d22945180e2b57f4a0796701d", "accae6d05c3278ec64cc9471530964da", "6fa35d7f491e30048566c5f760ad2f63",
		},
		300000: {
			"2c380860e5e0715da547dd8d3c315716", "b98b776d0a22a06eca857b81a1af5c7b", "6ce590fcba52622f4519acad03ee937c",
			"a863d638f0c00653ad6c69c2854fe62c", "213f01746ddf06813e2968480129c92b", "fc34722d17daac1dc6adae7b8e5fe660",
			"092f1cc0e02cb035052f943e76e787db", "f1e5dcce72d7e98346a19a05fe4542a2", "78e5dbd2b406830633e2caa35e437f0e",
		},
	} {
		in := input(size)
		for i, digest := range want {
			whole := compress(t, i+1, in)
			if sum := md5.Sum(whole); hex.EncodeToString(sum[:]) != digest {
				t.Errorf("%d bytes at level %d: %x, want %s", size, i+1, sum, digest)
			}
			var pieces [][]byte
			for rest := in; len(rest) > 0; {
				n := min(1+rand.IntN(9000), len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			if !bytes.Equal(compress(t, i+1, pieces...), whole) {
				t.Errorf("%d bytes at level %d: other bytes from pieces", size, i+1)
			}
		}
	}
}

// TestReset checks that a Writer begins anew, also after an error, and that an
// error of what it writes to stays until then.
func TestReset(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	w, err := NewWriter(failing{full}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(input(300_000)); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	in := []byte(strings.Repeat("hello ", 99))
	for range 3 {
		var out bytes.Buffer
		w.Reset(&out)
		_, _ = w.Write(in)
		if err := w.Close(); err != nil || !bytes.Equal(out.Bytes(), compress(t, 8, in)) {
			t.Errorf("%x, %v", out.Bytes(), err)
		}
	}
	if _, err := NewWriter(nil, 10); err == nil {
		t.Error("level 10 is taken")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func BenchmarkWriter(b *testing.B) {
	w, err := NewWriter(&bytes.Buffer{}, 8)
	if err != nil {
		b.Fatal(err)
	}
	for name, size := range map[string]int{"1KB": 1 << 10, "1MB": 1 << 20} {
		in := input(size)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				w.Reset(&out)
				_, _ = w.Write(in)
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
