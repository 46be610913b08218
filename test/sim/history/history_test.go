package history

import (
	"strings"
	"testing"
	"time"
)

const (
	whole = "00000000-ffffffff"
	r1    = "1-a"
	r2    = "2-b"
)

func at(from, to int) Span {
	return Span{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

// good returns a history that keeps every rule.
func good() *History {
	leaf := func() map[string][]Leaf {
		return map[string][]Leaf{"x": {{Rev: r2, Number: 2, Ancestors: []string{r1}, Attachments: map[string]string{"f": "sum"}}}}
	}
	numbers := func() map[int]string { return map[int]string{2: "x"} }
	return &History{
		Calm: []Span{at(0, 100)},
		Edits: []Edit{
			{Span: at(1, 2), Node: "n1", DB: "db", ID: "x", Number: 1, Rev: r1, Quorum: 2, Outcome: Acked},
			{Span: at(3, 4), Node: "n1", DB: "db", ID: "x", Number: 2, Parent: r1, Rev: r2, Quorum: 2, Outcome: Acked, Attachments: map[string]string{"f": "sum"}},
			{Span: at(3, 5), Node: "n2", DB: "db", ID: "x", Number: 3, Parent: r1, Outcome: Conflict},
			{Span: at(3, 5), Node: "n2", DB: "db", ID: "y", Number: 4, Outcome: Unknown},
		},
		Reads: []Read{
			{Span: at(3, 4), Node: "n2", DB: "db", ID: "x", Quorum: 2, Status: 200, Rev: r1, Number: 1},
			{Span: at(5, 6), Node: "n2", DB: "db", ID: "x", Quorum: 2, Status: 200, Rev: r2, Number: 2, Ancestors: []string{r1}},
		},
		Pages: []Page{
			{Span: at(2, 3), Node: "n1", DB: "db", Since: Since{Page: Beginning}, Rows: []Row{{"1-s", "x", []string{r1}}}, Last: "1-s"},
			{Span: at(2, 2), Node: "n1", DB: "db", Since: Since{Page: Now}, Last: "1-s"},
		},
		Replays: []Replay{
			{DB: "db", Since: Since{Page: Beginning}, Rows: map[string][]string{"x": {r2}}},
			{DB: "db", Since: Since{Page: 0, Rows: 1}, Rows: map[string][]string{"x": {r2}}},
			{DB: "db", Since: Since{Page: 1}, Rows: map[string][]string{"x": {r2}}},
		},
		Registers: []Register{
			{Span: at(1, 2), Path: "l", Write: true, Value: 7, Outcome: Acked},
			{Span: at(3, 4), Path: "l", Value: 7, Outcome: Acked},
		},
		Metas: []Meta{
			{Span: at(1, 2), Node: "n1", DB: "t", Kind: Create, Status: 201},
			{Span: at(3, 4), Node: "n2", DB: "t", Kind: Create, Status: 412},
			{Span: at(5, 6), Node: "n2", DB: "t", Kind: SetSecurity, Value: 5, Status: 200},
			{Span: at(7, 8), Node: "n3", DB: "t", Kind: GetSecurity, Value: 5, Status: 200},
			{Span: at(9, 10), Node: "n1", DB: "t", Kind: Delete, Status: 200},
			{Span: at(11, 12), Node: "n2", DB: "t", Kind: Look, Status: 404},
			{Span: at(11, 12), Node: "n3", DB: "t", Kind: Look, Status: 200}, // it has not heard yet
			{Span: at(13, 14), Node: "n2", DB: "t", Kind: Create},
			{Span: at(15, 16), Node: "n2", DB: "t", Kind: Delete, Status: 200},
		},
		Copies: []Copy{
			{DB: "db", Range: whole, Node: "n1", Docs: leaf(), Numbers: numbers()},
			{DB: "db", Range: whole, Node: "n2", Docs: leaf(), Numbers: numbers()},
		},
	}
}

// renew makes the temporary database again and writes a document to it, which
// is nowhere in the end.
func renew(h *History, o Outcome) *Edit {
	h.Metas = append(h.Metas, Meta{Span: at(17, 18), Node: "n1", DB: "t", Kind: Create, Status: 201})
	h.Copies = append(h.Copies, Copy{DB: "t", Range: whole, Node: "n1"})
	h.Edits = append(h.Edits, Edit{Span: at(19, 20), Node: "n3", DB: "t", ID: "d", Number: 8, Rev: r1, Quorum: 2, Outcome: o})
	return &h.Edits[len(h.Edits)-1]
}

func TestGoodHistory(t *testing.T) {
	for _, v := range Check(good()) {
		t.Error(v)
	}
}

func TestBadHistories(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(h *History)
		want string // in the first violation
	}{
		{"a lost edit", func(h *History) {
			for i := range h.Copies {
				h.Copies[i].Docs["x"][0].Ancestors = nil
			}
		}, "is lost on n1"},
		{"an edit that was only accepted is lost", func(h *History) {
			h.Edits[3].Outcome, h.Edits[3].Rev = Accepted, "1-z"
			h.Calm = nil
		}, "is lost on n1"},
		{"an edit with a quorum is lost with one disk", func(h *History) {
			h.Edits[3].Quorum, h.Edits[3].Outcome, h.Edits[3].Rev = 2, Acked, "1-z"
			h.Losses = []Span{at(0, 10)}
		}, "is lost on n1"},
		{"a copy without the document", func(h *History) { delete(h.Copies[1].Docs, "x") }, "copies " + whole + " and " + whole + " of db differ in x"},
		{"another winner", func(h *History) {
			two := []Leaf{h.Copies[0].Docs["x"][0], {Rev: "2-c"}}
			h.Copies[0].Docs["x"] = two
			h.Copies[1].Docs["x"] = []Leaf{two[1], two[0]}
		}, "differ in x"},
		{"another attachment on one copy", func(h *History) { h.Copies[1].Docs["x"][0].Attachments["f"] = "other" }, "differ in x"},
		{"other attachments than were written", func(h *History) {
			for i := range h.Copies {
				h.Copies[i].Docs["x"][0].Attachments = nil
			}
		}, "attachments map[]"},
		{"another body", func(h *History) {
			for i := range h.Copies {
				h.Copies[i].Docs["x"][0].Number = 9
			}
		}, "number 9, written were false, 2"},
		{"a refused edit is stored", func(h *History) { h.Copies[1].Numbers[3] = "x" }, "number 3 on 1-a was refused"},
		{"a refused edit is read", func(h *History) { h.Reads[0].Number = 3 }, "was refused"},
		{"a purged revision is there", func(h *History) {
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Acked}}
		}, "was purged"},
		{"an acknowledged purge is lost with one disk", func(h *History) {
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Acked}}
			h.Losses = []Span{at(0, 10)}
		}, "was purged"},
		{"an accepted purge is lost with another time's disk", func(h *History) {
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Accepted}}
			h.Losses = []Span{at(0, 5)}
		}, "was purged"},
		{"a change is missed", func(h *History) { h.Replays[1].Rows = nil }, "the client knows [1-a]"},
		{"a change is missed although the disk that was lost had nothing more", func(h *History) {
			h.Replays[1].Rows, h.Losses = nil, []Span{at(0, 10)}
			h.Edits[1].Outcome = Accepted
		}, "the client knows [1-a]"},
		{"a change is missed since now", func(h *History) { h.Replays[2].Rows = nil }, "the client knows []"},
		{"an older state comes last", func(h *History) { h.Replays[0].Rows["x"] = []string{r1} }, "the client knows [1-a]"},
		{"a feed shows what is not there", func(h *History) { h.Replays[0].Rows["ghost"] = []string{r1} }, "ghost is in the feed"},
		{"a feed cannot be read", func(h *History) { h.Replays[0].Err = "400" }, "since the beginning: 400"},
		{"a stale read", func(h *History) { h.Reads[1].Rev, h.Reads[1].Ancestors = r1, nil }, "2-b was acknowledged"},
		{"a document that cannot be read", func(h *History) {
			h.Reads[1] = Read{Span: at(5, 6), DB: "db", ID: "x", Quorum: 2, Status: 404}
		}, "2-b was acknowledged"},
		{"a forgotten number", func(h *History) { h.Registers[1].Value = 6 }, "7 was acknowledged"},
		{"what a client saw", func(h *History) { h.Wrong = []string{"rows out of order"} }, "rows out of order"},
		{"an internal error", func(h *History) {
			h.Failures = []Failure{{Span: at(200, 201), Request: "GET /", Status: 500, Text: "boom"}}
		}, "500 boom"},
		{"no answer although nothing is broken", func(h *History) {
			h.Failures = []Failure{{Span: at(50, 51), Request: "GET /"}}
		}, "GET / through"},
		{"only accepted although nothing is broken", func(h *History) { h.Edits[0].Outcome = Accepted }, "was only accepted"},
		{"created twice", func(h *History) { h.Metas[1].Status = 201 }, "have no order"},
		{"missing although it was created", func(h *History) {
			h.Metas[3] = Meta{Span: at(7, 8), Node: "n3", DB: "t", Kind: Look, Status: 404}
		}, "have no order"},
		{"deleted and still seen there", func(h *History) { h.Metas[5].Node, h.Metas[6].Node = "n2", "n1" }, "shows what is not there"},
		{"a security object that nobody wrote", func(h *History) { h.Metas[3].Value = 6 }, "shows what is not there"},
		{"a document from before the deletion", func(h *History) {
			h.Edits = append(h.Edits, Edit{Span: at(6, 7), DB: "t", ID: "d", Number: 8, Outcome: Acked, Rev: r1})
			h.Copies = append(h.Copies, Copy{DB: "t", Range: whole, Node: "n1", Numbers: map[int]string{8: "d"}})
		}, "outlived the deletion"},
		{"a document of the database that was made again", func(h *History) { renew(h, Acked) }, "is lost on n1"},
		{"one that was only accepted while nothing was broken", func(h *History) { renew(h, Accepted) }, "is lost on n1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := good()
			tc.harm(h)
			found := Check(h)
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), tc.want) {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}

// TestExcused are histories that look bad and are not.
func TestExcused(t *testing.T) {
	for _, tc := range []struct {
		name string
		turn func(h *History)
	}{
		{"an edit on one disk that was lost", func(h *History) {
			h.Edits[3].Quorum, h.Edits[3].Outcome, h.Edits[3].Rev = 1, Acked, "1-z"
			h.Losses = []Span{at(0, 10)}
		}},
		{"a local document on a disk that was lost", func(h *History) {
			h.Registers[1].Value, h.Losses = 6, []Span{at(0, 4)}
		}},
		{"an older read while something is broken", func(h *History) { h.Calm, h.Reads[1].Rev, h.Reads[1].Ancestors = nil, r1, nil }},
		{"an older read with r=1", func(h *History) { h.Reads[1].Quorum, h.Reads[1].Rev, h.Reads[1].Ancestors = 1, r1, nil }},
		{"an older read of a write with w=1", func(h *History) { h.Edits[1].Quorum, h.Reads[1].Rev, h.Reads[1].Ancestors = 1, r1, nil }},
		{"another branch wins", func(h *History) { h.Reads[1].Rev = "3-c" }},
		{"a read after a deletion", func(h *History) {
			h.Edits = append(h.Edits, Edit{Span: at(4, 9), DB: "db", ID: "x", Deleted: true, Outcome: Unknown})
			h.Reads[1] = Read{Span: at(5, 6), DB: "db", ID: "x", Quorum: 2, Status: 404}
		}},
		{"an edit that a feed has shown is lost with the disk", func(h *History) {
			h.Edits = append(h.Edits, Edit{Span: at(5, 6), DB: "db", ID: "x", Number: 5, Parent: r2, Rev: "3-z", Quorum: 2, Outcome: Accepted})
			h.Losses, h.Calm = []Span{at(0, 10)}, nil
			h.Pages[0].Rows[0].Leaves, h.Replays[1].Rows = []string{"3-z"}, nil
		}},
		{"an accepted purge is lost with the disk", func(h *History) {
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Accepted}}
			h.Losses = []Span{at(0, 10)}
		}},
		{"a purged edit is gone", func(h *History) {
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Acked}}
			for i := range h.Copies {
				delete(h.Copies[i].Docs, "x")
				h.Copies[i].Numbers = nil
			}
		}},
		{"what an edit without an answer was based on is purged with it", func(h *History) {
			h.Edits[1].Outcome, h.Edits[1].Rev = Unknown, ""
			h.Purges = []Purge{{Span: at(6, 7), DB: "db", ID: "x", Rev: r2, Outcome: Acked}}
			for i := range h.Copies {
				delete(h.Copies[i].Docs, "x")
				h.Copies[i].Numbers = nil
			}
		}},
		{"no answer while something is broken", func(h *History) {
			h.Failures = []Failure{{Span: at(150, 151), Request: "GET /", Status: 503}}
		}},
		{"a document came before the database was made again", func(h *History) { renew(h, Acked).Call = 0 }},
		{"a document was accepted by a node that may have been alone", func(h *History) {
			renew(h, Accepted)
			h.Calm = nil
		}},
		{"a document of a database whose deletion was not answered", func(h *History) {
			renew(h, Acked)
			h.Metas = append(h.Metas, Meta{Span: at(16, 17), Node: "n1", DB: "t", Kind: Delete})
		}},
		{"a creation without an answer happened later", func(h *History) {
			h.Metas[7].Span = at(0, 1)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := good()
			tc.turn(h)
			for _, v := range Check(h) {
				t.Error(v)
			}
		})
	}
}

func TestSequence(t *testing.T) {
	h := &History{Pages: []Page{
		{Since: Since{Page: Beginning}, Rows: []Row{{Seq: "1"}, {Seq: "2"}}, Last: "3"},
		{Since: Since{Page: 0, Rows: 2}, Rows: []Row{{Seq: "4"}}},
	}}
	for _, tc := range []struct {
		at   Since
		want string
	}{
		{Since{Page: Beginning}, "0"},
		{Since{0, 0}, "0"},
		{Since{0, 1}, "1"},
		{Since{0, 2}, "3"},
		{Since{1, 0}, "3"},
		{Since{1, 1}, "4"},
	} {
		if got := h.Sequence(tc.at); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.at, got, tc.want)
		}
	}
}
