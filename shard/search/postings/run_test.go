package postings

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

// listed is a list as text, and whether it can be read.
func listed(value []byte) (out string, err error) {
	var l List
	l.Reset(value)
	for d := l.Seek(0); d < End; d = l.Seek(d + 1) {
		out += fmt.Sprint(d, "×", l.Freq(), l.Positions(nil), " ")
	}
	return out, l.Err()
}

// TestJoinInAnyOrder: when operands are joined in any groups, the list is the same, and
// its runs are full.
func TestJoinInAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var parts [][]byte
		offset, docs := uint32(0), 0
		lengths := map[uint32]byte{}
		for range rapid.IntRange(1, 40).Draw(r, "operands") {
			var one run
			for range rapid.IntRange(1, 40).Draw(r, "documents") {
				offset += uint32(rapid.IntRange(1, 30).Draw(r, "distance"))
				var positions []uint32
				position := uint32(0)
				for range rapid.IntRange(1, 3).Draw(r, "frequency") {
					position += uint32(rapid.IntRange(0, 300).Draw(r, "position"))
					positions = append(positions, position)
				}
				lengths[offset] = rapid.Byte().Draw(r, "length")
				one.add(offset, positions, lengths[offset])
				docs++
			}
			parts = append(parts, one.append(nil, 0))
		}
		want, err := listed(bytes.Join(parts, nil))
		if err != nil {
			r.Fatal(err)
		}
		for len(parts) > 1 {
			i := rapid.IntRange(0, len(parts)-2).Draw(r, "first")
			n := rapid.IntRange(2, len(parts)-i).Draw(r, "group")
			joined := Join([]byte{spaceList}, bytes.Join(parts[i:i+n], nil))
			parts = append(append(parts[:i:i], joined), parts[i+n:]...)
		}
		if got, err := listed(parts[0]); err != nil || got != want {
			r.Fatalf("%s\nin place of %s: %v", got, want, err)
		}
		if n, err := Docs(parts[0]); err != nil || n != docs {
			r.Fatalf("%d documents in place of %d: %v", n, docs, err)
		}
		if err := checkHeads(parts[0], lengths); err != nil {
			r.Fatal(err)
		}
		if again := Join([]byte{spaceColumn}, parts[0]); !bytes.Equal(again, parts[0]) {
			r.Fatal("the value of another key was changed")
		}
	})
}

// checkHeads compares what the heads of a list tell to its documents.
func checkHeads(value []byte, lengths map[uint32]byte) error {
	runs, docs := Runs{rest: value}, 0
	for head, ok := runs.Next(); ok; head, ok = runs.Next() {
		var l List
		var of run
		l.ResetTo(&head)
		for d := l.Seek(0); d < End; d = l.Seek(d + 1) {
			of.add(d, make([]uint32, l.Freq()), lengths[d])
		}
		if got := (run{docs: head.Docs, first: head.First, last: head.Last, highest: head.Highest, shortest: head.Shortest}); l.Err() != nil ||
			got.docs != of.docs || got.first != of.first || got.last != of.last || got.highest != of.highest || got.shortest != of.shortest {
			return fmt.Errorf("the head %+v is of %+v: %w", got, of, l.Err())
		}
		docs += of.docs
	}
	if n, err := Docs(value); err != nil || docs != n || runs.Err() != nil {
		return fmt.Errorf("runs of %d of %d documents: %w, %w", docs, n, err, runs.Err())
	}
	return nil
}

// TestJoinFillsRuns: runs of one document become one.
func TestJoinFillsRuns(t *testing.T) {
	var all []byte
	for i := range uint32(runDocs) {
		var one run
		one.add(i, []uint32{i}, 1)
		all = one.append(all, 0)
	}
	joined := Join([]byte{spaceList}, all)
	r, rest, ok := cutRun(joined)
	if !ok || len(rest) > 0 || r.docs != runDocs || len(joined) > len(all)/2 {
		t.Errorf("%d bytes became %d; the first run has %d documents", len(all), len(joined), r.docs)
	}
}

// FuzzList: bytes that are no list are fault.Corruption, and joining changes no list.
func FuzzList(f *testing.F) {
	var one run
	one.add(3, []uint32{1, 7}, 9)
	one.add(900, []uint32{5}, 200)
	f.Add(one.append(nil, 0))
	f.Add(one.append(one.append(nil, 0), 5000))
	f.Add([]byte{1, 0, 0, 1, 1, 1, 9, 1, 0})
	f.Add([]byte{1, 0, 0, 1, 1, 2, 9, 1, 0}) // a frequency that no document has
	f.Fuzz(func(t *testing.T, value []byte) {
		runs, docs := Runs{rest: value}, 0
		for r, ok := runs.Next(); ok; r, ok = runs.Next() {
			docs += r.Docs
		}
		want, err := listed(value)
		if err == nil && runs.Err() != nil {
			t.Fatal("a list has no runs: ", runs.Err())
		}
		if err != nil {
			if !fault.Is(err, fault.Corruption) {
				t.Fatal(err)
			}
			_ = Join([]byte{spaceList}, value)
			return
		}
		if got, err := listed(Join([]byte{spaceList}, value)); err != nil || got != want {
			t.Fatalf("%s became %s, %v", want, got, err)
		}
		if n, err := Docs(value); err != nil || n != docs {
			t.Fatal(n, docs, err)
		}
		var s Set
		if err := s.AddList(value); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzValues: bytes that are no entries, no totals and no number are refused.
func FuzzValues(f *testing.F) {
	f.Add([]byte{0, 1, 5}, byte(Lengths))
	f.Add([]byte{0, 1, 2, 'a', 'b'}, byte(Facets))
	f.Add((&Totals{Next: 7, Live: 5, Bytes: 100}).append(nil), byte(Numbers))
	f.Fuzz(func(t *testing.T, b []byte, kind byte) {
		for rest, ok := b, true; ok && len(rest) > 0; {
			before := len(rest)
			if _, _, rest, ok = cutEntry(Column(kind), rest); ok && len(rest) >= before {
				t.Fatal("an entry without bytes")
			}
		}
		if n, err := decodeNumber(b); err == nil && !bytes.Equal(appendNumber(nil, n), b) {
			t.Fatalf("%x is %d", b, n)
		}
		if totals, err := decodeTotals(b); err == nil {
			if again, err := decodeTotals(totals.append(nil)); err != nil || again != totals {
				t.Fatalf("%v is read as %v, %v", totals, again, err)
			}
		}
	})
}
