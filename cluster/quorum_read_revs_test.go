package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/cluster/window"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestRevisionsNamedTwice: each is answered once, at its first place, whether
// the copies agree, differ, or the one that has it is asked last.
func TestRevisionsNamedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up := w.down(node2, node3)
		second := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":2}`)})[0].Rev
		up()
		none := doc.Rev{Pos: 2, ID: "none"}
		named := []doc.Rev{none, second, first, none, second, first, second}
		for _, copies := range []string{"differ", "agree"} { // the first read repairs them
			for _, tc := range []struct {
				from   *DB
				r      int
				latest bool
				want   []doc.Rev
			}{
				{d, 1, false, []doc.Rev{none, second, first}},
				{d, 3, false, []doc.Rev{none, second, first}},
				{d, 3, true, []doc.Rev{none, second}},
				{d.ordered(node2, node3, node1).without(node1), 1, false, []doc.Rev{none, second, first}},
			} {
				got, err := tc.from.OpenRevs(t.Context(), OpenRevsOptions{ID: "a", Revs: named, Latest: tc.latest, R: tc.r})
				var revs []doc.Rev
				for _, r := range got {
					revs = append(revs, r.Rev)
				}
				if err != nil || !slices.Equal(revs, tc.want) {
					t.Errorf("copies %s, r=%d, latest=%t: %v, %v", copies, tc.r, tc.latest, revs, err)
				}
			}
			w.settleWrites()
		}
	})
}

// TestRevisionsOfCopiesThatRefuse: a copy that is being rebuilt does not count
// as one that has answered. Another one is asked in its place, and what the
// others say counts, also that there is nothing.
func TestRevisionsOfCopiesThatRefuse(t *testing.T) {
	for _, tc := range []struct{ behind, rebuilt string }{{node1, node2}, {node1, node1}, {node2, node1}, {node2, node3}} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
			w.settleWrites()
			second := put(t, d.ordered(node1, node2, node3).without(tc.behind), "a", first, `{"n":2}`)
			w.settleWrites()
			w.joinAgain(d.routing.Owner("a").Copies[0].Name, tc.rebuilt)
			got, errs := d.ordered(node1, node2, node3).OpenRevsMany(t.Context(), []OpenRevsOptions{
				{ID: "a", All: true}, {ID: "none", All: true}, {ID: "a", Revs: []doc.Rev{second}},
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%+v: %v", tc, err)
			}
			for _, i := range []int{0, 2} {
				if len(got[i]) != 1 || got[i][0].Rev != second || got[i][0].Doc == nil {
					t.Errorf("%+v: answer %d is %+v", tc, i, got[i])
				}
			}
			if len(got[1]) != 0 {
				t.Errorf("%+v: %+v", tc, got[1])
			}
			w.settleWrites()
		})
	}
}

// TestRevisionsWithinBytes: what is beyond the bound of a request is told document by document,
// whether the copies agree or not, and whichever of them has the revisions; OpenRevs reads a
// document that is beyond any such bound when there is memory for it.
func TestRevisionsWithinBytes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		const size = 1 << 20
		body := []byte(`{"s":"` + strings.Repeat("x", size) + `"}`)
		write := func(revs ...string) {
			for _, rev := range revs {
				update(t, d, UpdateOptions{}, shard.Edit{ID: "a", Path: doc.Path{Start: 1, IDs: []string{rev}}, Body: body})
			}
		}
		write("a", "b", "c")
		w.settleWrites()
		d, all := d.without(node1), d
		write("d", "e", "f")
		d = all
		var named []doc.Rev
		for _, id := range []string{"a", "d", "e"} {
			named = append(named, doc.Rev{Pos: 1, ID: id})
		}
		for _, tc := range []struct {
			o    OpenRevsOptions
			want int
		}{
			{OpenRevsOptions{All: true, R: 1}, 3},
			{OpenRevsOptions{Revs: named, R: 1}, 3}, // two of them from a copy that is asked later
			{OpenRevsOptions{All: true, R: 3}, 6},   // the copies differ
		} {
			tc.o.ID = "a"
			for _, maxBytes := range []int{1, 2 * size} {
				if tc.o.MaxBytes = maxBytes; maxBytes > size && !tc.o.All {
					continue // each copy has one revision of them, or goes beyond with one
				}
				if got, errs := d.OpenRevsMany(t.Context(), []OpenRevsOptions{tc.o}); !fault.Is(errs[0], fault.RequestTooLarge) || got[0] != nil {
					t.Errorf("%+v: %d revisions, %v", tc.o, len(got[0]), errs[0])
				}
			}
			large := tc.want > 3
			space := held{limit: 40 * size}
			tc.o.Memory, tc.o.MaxBytes = &space, 0
			got, err := d.OpenRevs(t.Context(), tc.o)
			for i := range got {
				if got[i].Doc == nil || len(got[i].Doc.Body) != len(body) {
					t.Errorf("%+v: revision %s has %v", tc.o, got[i].Rev, got[i].Doc)
				}
			}
			if err != nil || len(got) != tc.want || space.bytes != 0 || large != (space.most > 0) {
				t.Errorf("%+v: %d revisions, %v; %+v", tc.o, len(got), err, space)
			}
			if space.limit = 3 * size; large {
				if got, err := d.OpenRevs(t.Context(), tc.o); !errors.Is(err, errNoSpace) || got != nil || space.bytes != 0 {
					t.Errorf("%+v without memory: %d revisions, %v; %+v", tc.o, len(got), err, space)
				}
			}
		}
	})
}

// held counts memory up to a limit.
type held struct{ bytes, most, limit int }

var errNoSpace = errors.New("no space")

func (h *held) Hold(n int) error {
	if h.bytes+n > h.limit {
		return errNoSpace
	}
	h.bytes += n
	h.most = max(h.most, h.bytes)
	return nil
}

func (h *held) Drop(n int) { h.bytes -= n }

// TestWinnersWithinBytes: rows with large documents are those of the first ids, wherever those are.
func TestWinnersWithinBytes(t *testing.T) {
	bubble(t, func(t *testing.T, _ *world, d *DB) {
		t.Helper()
		const size = 3 << 20
		var ids []string
		for i := range 12 {
			id, body := fmt.Sprintf("d%d", i), `{}`
			if i > 3 {
				body = `{"s":"` + strings.Repeat("x", size) + `"}`
			}
			put(t, d, id, doc.Rev{}, body)
			ids = append(ids, id, "none"+id)
		}
		for left := ids; len(left) > 0; {
			rows, err := d.Winners(t.Context(), left)
			if err != nil || len(rows) == 0 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			bytes := 0
			for i := range rows {
				if bytes += rows[i].Doc.Size(); rows[i].ID != left[i] || rows[i].Missing != strings.HasPrefix(left[i], "none") || rows[i].Missing == (rows[i].Doc != nil) {
					t.Errorf("%s has %+v", left[i], rows[i])
				}
			}
			if bytes > window.MaxBytes+size+size/2 {
				t.Errorf("%d rows have %d bytes", len(rows), bytes)
			}
			left = left[len(rows):]
		}
	})
}

// TestLeafOfTwoRevisions: a leaf to which two named revisions lead is answered once, also when the
// first copy that is asked has neither.
func TestLeafOfTwoRevisions(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		others := d.without(node1)
		second := put(t, others, "a", first, `{"n":2}`)
		third := put(t, others, "a", second, `{"n":3}`)
		w.settleWrites()
		got, err := d.OpenRevs(t.Context(), OpenRevsOptions{ID: "a", Revs: []doc.Rev{second, third}, Latest: true, R: 1})
		if err != nil || len(got) != 1 || got[0].Rev != third || got[0].Doc == nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
