package collate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// requireICU is an environment variable: with a value, a machine without ICU
// fails TestAgainstICU instead of skipping it.
const requireICU = "DIVAN_REQUIRE_ICU"

// icuKeys builds the program that asks ICU, or says what is missing for it.
func icuKeys(t *testing.T) string {
	t.Helper()
	missing := t.Skipf
	if os.Getenv(requireICU) != "" {
		missing = t.Fatalf
	}
	program := filepath.Join(t.TempDir(), "icu_keys")
	build := exec.CommandContext(t.Context(), "cc", "-O2", "-o", program, "testdata/icu_keys.c", "-licui18n", "-licuuc")
	if out, err := build.CombinedOutput(); err != nil {
		missing("no C compiler with ICU (Debian: gcc libc6-dev libicu-dev): %v %.200s", err, out)
	}
	return program
}

// TestAgainstICU compares the sort keys of every code point, and of random
// strings, with those of ICU itself.
func TestAgainstICU(t *testing.T) {
	program := icuKeys(t)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- writeStrings(in) }()
	keys := bufio.NewReaderSize(out, 1<<16)
	version, err := keys.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if version = strings.TrimSpace(version); !strings.HasPrefix(Version, "icu"+version+"-") {
		_ = cmd.Process.Kill()
		if err := <-written; err == nil {
			t.Log("all strings fitted into the pipe")
		}
		_ = cmd.Wait()
		t.Skipf("ICU here is %s, the tables are %s", version, Version)
	}
	compared, mismatches := 0, 0
	var mine, theirs []byte
	eachString(func(s string) bool {
		if theirs, err = readKey(keys, theirs); err != nil {
			t.Errorf("%+q: %v", s, err)
			return false
		}
		compared++
		if mine = AppendString(mine[:0], s); !bytes.Equal(mine, theirs) {
			if mismatches++; mismatches <= 10 {
				t.Errorf("%+q: got %x, ICU has %x", s, mine, theirs)
			}
		}
		return true
	})
	if err = <-written; err != nil {
		t.Error(err)
	}
	if err = cmd.Wait(); err != nil {
		t.Error(err)
	}
	if compared != codePoints+randomStrings {
		t.Errorf("%d strings compared, want %d", compared, codePoints+randomStrings)
	}
	t.Logf("ICU %s: %d strings compared, %d mismatches", version, compared, mismatches)
}

const (
	codePoints    = utf8.MaxRune + 1 - 0x800 // without surrogates
	randomStrings = 1_000_000
)

// eachString calls fn with every code point, then with random strings, the same
// ones each time, until it returns false.
func eachString(fn func(string) bool) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && !fn(string(r)) {
			return
		}
	}
	rnd := rand.New(rand.NewPCG(12, 3))
	contracting := contracting()
	buf := make([]byte, 0, 100)
	for range randomStrings {
		buf = buf[:0]
		for range 1 + rnd.IntN(16) {
			buf = utf8.AppendRune(buf, randomRune(rnd, contracting))
		}
		if !fn(string(buf)) {
			return
		}
	}
}

// contracting returns the characters that contractions and prefix rules are
// made of, in order.
func contracting() []rune {
	var out []rune
	var walk func(r rune, n *node)
	walk = func(r rune, n *node) {
		out = append(out, r)
		for next, to := range n.next {
			walk(next, to)
		}
	}
	for r, n := range root().contractions {
		walk(r, n)
	}
	for r, m := range root().prefixes {
		out = append(out, r)
		for before := range m {
			out = append(out, before)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// randomRune draws from ranges that behave differently.
func randomRune(rnd *rand.Rand, contracting []rune) rune {
	for _, in := range []struct {
		share       int // percent of what is left
		first, last rune
	}{
		{25, 0x20, 0x7e},       // ASCII
		{15, 0xa0, 0x24f},      // Latin
		{15, 0x300, 0x36f},     // marks
		{10, 0x370, 0x6ff},     // Greek, Cyrillic, Hebrew, Arabic
		{10, 0x900, 0x109f},    // Indic scripts, Thai, Lao, Tibetan, Burmese
		{10, 0x1100, 0x11ff},   // Jamo
		{10, 0xac00, 0xd7a3},   // Hangul
		{15, 0x3000, 0x30ff},   // Kana
		{20, 0x4e00, 0x9fff},   // Han
		{20, 0x2000, 0x2bff},   // symbols
		{10, 0x0, 0x1f},        // control
		{30, 0x1f300, 0x1faff}, // emoji
	} {
		if rnd.IntN(100) < in.share {
			return in.first + rnd.Int32N(in.last-in.first+1)
		}
	}
	if rnd.IntN(3) > 0 {
		return contracting[rnd.IntN(len(contracting))]
	}
	for {
		if r := rnd.Int32N(utf8.MaxRune + 1); utf8.ValidRune(r) {
			return r
		}
	}
}

func writeStrings(to io.WriteCloser) error {
	w := bufio.NewWriterSize(to, 1<<16)
	var err error
	eachString(func(s string) bool {
		var size [4]byte
		binary.NativeEndian.PutUint32(size[:], uint32(len(s)))
		if _, err = w.Write(size[:]); err == nil {
			_, err = w.WriteString(s)
		}
		return err == nil
	})
	if err == nil {
		err = w.Flush()
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

func readKey(r io.Reader, into []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return into, err
	}
	into = slices.Grow(into[:0], int(binary.NativeEndian.Uint32(size[:])))[:binary.NativeEndian.Uint32(size[:])]
	_, err := io.ReadFull(r, into)
	return into, err
}
