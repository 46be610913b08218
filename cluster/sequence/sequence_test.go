package sequence

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/shard/ring"
	"divan/storage/fault"
)

// drawMarks draws the marks of a sequence over a ring cut anywhere.
func drawMarks(t *rapid.T) []Mark {
	cuts := rapid.SliceOfNDistinct(rapid.Uint32Min(1), 0, 8, rapid.ID[uint32]).Draw(t, "cuts")
	slices.Sort(cuts)
	marks := make([]Mark, 0, len(cuts)+1)
	begin := uint32(0)
	for i := 0; i <= len(cuts); i++ {
		end := uint32(math.MaxUint32)
		if i < len(cuts) {
			end = cuts[i] - 1
		}
		marks = append(marks, Mark{
			Begin: begin, End: end, Seq: rapid.Uint64Max(maxSequence).Draw(t, "seq"),
			Copy: CopyID(rapid.SliceOfN(rapid.Byte(), uuidPrefix, uuidPrefix).Draw(t, "copy")),
		})
		begin = end + 1
	}
	return marks
}

func TestSequenceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := drawMarks(t)
		text := Seq{marks: slices.Clone(marks)}.String()
		for _, spelled := range []string{text, `"` + text + `"`, text[strings.IndexByte(text, '-')+1:]} {
			got, err := ParseSince(spelled)
			if err != nil {
				t.Fatalf("%s: %v", spelled, err)
			}
			if !slices.Equal(got.marks, marks) {
				t.Fatalf("%s reads as %v, want %v", spelled, got.marks, marks)
			}
		}
		if opaque := text[strings.IndexByte(text, '-')+1:]; len(opaque) < 16 {
			t.Fatalf("opaque part of %s is short", text)
		}
	})
}

// TestVectorMoves checks that changing one shard's part gives the same text as
// encoding everything.
func TestVectorMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewVector(drawMarks(t))
		for range rapid.IntRange(0, 10).Draw(t, "moves") {
			i := rapid.IntRange(0, len(v.Marks)-1).Draw(t, "shard")
			seq := rapid.Uint64Max(maxSequence).Draw(t, "to")
			if rapid.Bool().Draw(t, "other copy") {
				v.Move(i, CopyID{1, 2, 3}, seq)
			} else {
				v.Set(i, seq)
			}
			if got, want := string(v.AppendTo(nil)), (Seq{marks: slices.Clone(v.Marks)}).String(); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	})
}

func TestParseSince(t *testing.T) {
	good := Seq{marks: []Mark{{Begin: 0, End: math.MaxUint32, Seq: 7}}}.String()
	for _, text := range []string{"0", `"0"`} {
		if s, err := ParseSince(text); err != nil || !s.IsZero() || s.IsNow() {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"now", `"now"`} {
		if s, err := ParseSince(text); err != nil || !s.IsNow() || s.IsZero() {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	if s, err := ParseSince(good); err != nil || s.String() != good {
		t.Errorf("%s: %v, %v", good, s, err)
	}
	for _, text := range []string{
		"", "2", "-1", "abc", "3-abc", "3-", "NOW", `"`, `""`, "g1AAAABteJzLYWBg", "12-g1AAAABteJzLYWBg",
		good + "A", good[:len(good)-1], good + good[len(good)-pieceChars:], strings.Replace(good, "7-", "x-", 1),
		"123456789012345678901" + good[1:], strings.Replace(good, "-D", "-E", 1), good[:10] + "\n" + good[11:],
	} {
		_, err := ParseSince(text)
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != "Malformed sequence supplied in 'since' parameter." {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseSince(f *testing.F) {
	f.Add("0")
	f.Add("now")
	f.Add(Seq{marks: []Mark{{End: math.MaxUint32, Seq: 7}}}.String())
	f.Add(Seq{marks: []Mark{{End: 1<<31 - 1, Seq: 7}, {Begin: 1 << 31, End: math.MaxUint32, Seq: 9, Copy: CopyID{9}}}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSince(text)
		if err != nil {
			if !fault.Is(err, fault.BadRequest) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseSince(s.String())
		if err != nil || again.now != s.now || !slices.Equal(again.marks, s.marks) {
			t.Fatalf("%q: %s reads as %v, %v", text, s, again, err)
		}
	})
}

func TestResume(t *testing.T) {
	a, b, c := [16]byte{1}, [16]byte{2}, [16]byte{3}
	left, right := ring.Range{Begin: 0, End: 1<<31 - 1}, ring.Range{Begin: 1 << 31, End: math.MaxUint32}
	quarter := ring.Range{Begin: 0, End: 1<<30 - 1}
	whole := Seq{marks: []Mark{{End: math.MaxUint32, Copy: PrefixOf(a), Seq: 50}}}
	halves := Seq{marks: []Mark{
		{Begin: left.Begin, End: left.End, Copy: PrefixOf(a), Seq: 50},
		{Begin: right.Begin, End: right.End, Copy: PrefixOf(b), Seq: 20},
	}}
	for _, tc := range []struct {
		name  string
		since Seq
		r     ring.Range
		head  Head
		want  uint64
	}{
		{name: "the beginning", r: left, head: Head{UUID: a, Seq: 90}},
		{name: "the very copy", since: halves, r: left, head: Head{UUID: a, Seq: 90}, want: 50},
		{name: "the other half", since: halves, r: right, head: Head{UUID: b, Seq: 90}, want: 20},
		{name: "at the end", since: halves, r: left, head: Head{UUID: a, Seq: 50}, want: 50},
		{name: "an unknown copy", since: halves, r: left, head: Head{UUID: c, Seq: 90}},
		{name: "another copy of the range", since: halves, r: right, head: Head{UUID: c, Seq: 90}, want: 10},
		{name: "another copy of a part of the range", since: halves, r: quarter, head: Head{UUID: c, Seq: 90}},
		{name: "restored from a backup", since: halves, r: left, head: Head{UUID: a, Seq: 49}},
		{
			name: "split after", since: whole, r: left, want: 50,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: a, Upto: 60}}},
		},
		{
			name: "split before", since: whole, r: right, want: 40,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: a, Upto: 40}}},
		},
		{
			name: "split twice", since: whole, r: quarter, want: 30,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: b, Upto: 70}, {UUID: a, Upto: 30}}},
		},
		{
			name: "a range over two that were read: the earlier one", since: halves, r: ring.Full(), want: 20,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: a, Upto: 60}, {UUID: b, Upto: 60}}},
		},
		{
			name: "a range over two, one known by what is shared", since: halves, r: ring.Full(), want: 10,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: a, Upto: 60}}},
		},
		{
			name: "a range over two, one unknown", since: halves, r: ring.Full(),
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: b, Upto: 60}}},
		},
		{
			name: "split before, and shared beyond that", since: halves, r: right, want: 10,
			head: Head{UUID: c, Seq: 90, Origins: []Origin{{UUID: b, Upto: 5}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			shared := func(id CopyID, seq uint64) uint64 {
				if id == PrefixOf(b) {
					return seq / 2
				}
				return 0
			}
			if got := tc.since.Resume(tc.r, tc.head, shared); got != tc.want {
				t.Fatalf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func BenchmarkAppendSeq(b *testing.B) {
	marks := make([]Mark, 8)
	for i, r := range ring.Split(8) {
		marks[i] = Mark{Begin: r.Begin, End: r.End, Seq: uint64(i) * 1000}
	}
	v := NewVector(marks)
	var buf bytes.Buffer
	for i := 0; b.Loop(); i++ {
		v.Set(i&7, uint64(i))
		buf.Reset()
		buf.Write(v.AppendTo(buf.AvailableBuffer()))
	}
}
