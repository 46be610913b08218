package docformat

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestBase64Reader(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"aGVsbG8gd29ybGQ=":         "hello world",
		"aGVs\nbG8g\r\nd29y b GQ=": "hello world",
		"YQ= =":                    "a",
	} {
		if got, err := io.ReadAll(NewBase64Reader([]byte(text))); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"aGVsbG8gd29ybGQ", "-_-_", "***", "Y===", "=", "YQ\x00=="} {
		if got, err := io.ReadAll(NewBase64Reader([]byte(text))); err == nil {
			t.Errorf("%q: %q without an error", text, got)
		}
	}
}

func TestBase64ReaderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "data")
		text := base64.StdEncoding.EncodeToString(data)
		for range rapid.IntRange(0, 5).Draw(t, "spaces") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + rapid.SampledFrom([]string{" ", "\n", "\r\n", "\t"}).Draw(t, "space") + text[at:]
		}
		var r io.Reader = NewBase64Reader([]byte(text))
		if rapid.Bool().Draw(t, "one byte") {
			r = iotest.OneByteReader(r)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%q: %q, %v; want %q", text, got, err, data)
		}
	})
}

func BenchmarkBase64Reader(b *testing.B) {
	plain := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 1<<20)))
	var lines strings.Builder
	for rest := plain; rest != ""; {
		n := min(76, len(rest))
		lines.WriteString(rest[:n] + "\r\n")
		rest = rest[n:]
	}
	for name, text := range map[string][]byte{"Plain": []byte(plain), "Lines": []byte(lines.String())} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := io.Copy(io.Discard, struct{ io.Reader }{NewBase64Reader(text)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
