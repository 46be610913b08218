package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"divan/shard"
	"divan/storage/fault"
)

var (
	errConflict = fault.New(fault.Conflict, "conflict")
	errDown     = fault.New(fault.NodeDown, "down")
	errDisk     = errors.New("disk")
)

// unsent is an error that says that nothing was asked.
type unsent struct{ error }

func (unsent) NotSent() bool   { return true }
func (u unsent) Unwrap() error { return u.error }

// said returns the answer of a copy that scripts call by a word.
func said(t *testing.T, word string) error {
	t.Helper()
	answers := map[string]error{
		"ok":        nil,
		"conflict":  errConflict,
		"missing":   fault.New(fault.NotFound, "missing"),
		"deleted":   fault.New(fault.Deleted, "deleted"),
		"purged":    fault.New(fault.Purged, "purged"),
		"down":      errDown, // no connection, or it broke: the answer may have got lost
		"unsent":    unsent{fault.New(fault.NodeDown, "unsent")},
		"timeout":   context.DeadlineExceeded,
		"disk":      errDisk,
		"away":      fault.New(fault.Unavailable, "away"), // in maintenance
		"closing":   fault.New(fault.Closed, "closing"),
		"stale-map": fault.NewStaleMap(7), // the copy knows a newer map
		"no-copy":   fault.New(fault.NoCopy, "no-copy"),
		"no-memory": Final(fault.New(fault.Busy, "no-memory")),
	}
	err, known := answers[word]
	if !known {
		t.Fatalf("no answer is called %q", word)
	}
	return err
}

// script holds the deciders that the commands of a script talk to.
type script struct {
	write Write
	read  *Read
	first First
	heard int // answers to the read
}

// TestScripts runs the dialogues in testdata. A copy's answer is one of the words of said.
//
//	write copies=3 [joining=1] [w=2] [nodes=(2,1)]  begins a write
//	decide WORD [node=0]       a copy that decides answers
//	follow WORD [joining] [node=0]  a copy that takes the decision over answers
//	reconsider, withdraw WORD, fail, restart
//	read copies=3 [r=2]        begins a read
//	found 2-b/1-a [deleted]    the next copy answers with a path, newest first
//	refused WORD               the next copy answers with an error
//	step pending=1             how the read goes on
//	first [absent=2]; take WORD
//	local BODY...              the copies of a local document, by revision and body; - for none
//	cover                      the spans of the input: 00000000-7fffffff [cost]
//	classify                   the words of the input, as answers to an edit
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "write", "decide", "follow", "reconsider", "withdraw", "fail", "restart":
				return s.onWrite(t, d)
			case "read", "found", "refused", "step":
				return s.onRead(t, d)
			case "first", "take":
				return s.onFirst(t, d)
			case "local":
				return local(t, d)
			case "cover":
				return cover(t, d.Input)
			case "classify":
				return classify(t, d.Input)
			}
			t.Fatalf("%s: no command is called %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// word returns the answer that is the first argument of a command.
func word(t *testing.T, d *datadriven.TestData) error {
	t.Helper()
	if len(d.CmdArgs) == 0 {
		t.Fatalf("%s: %s of nothing", d.Pos, d.Cmd)
	}
	return said(t, d.CmdArgs[0].Key)
}

func (s *script) onWrite(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	node, q := 0, &s.write
	d.MaybeScanArgs(t, "node", &node)
	switch d.Cmd {
	case "write":
		var copies, joining, w int
		d.ScanArgs(t, "copies", &copies)
		d.MaybeScanArgs(t, "joining", &joining)
		d.MaybeScanArgs(t, "w", &w)
		*q = NewWrite(copies, joining, w)
		if on, ok := d.Arg("nodes"); ok {
			nodes := make([]uint8, len(on.Vals))
			for i := range nodes {
				on.Scan(t, i, &nodes[i])
			}
			q.OnNodes(nodes)
		}
	case "decide":
		q.Decide(node, word(t, d))
	case "follow":
		q.Follow(node, d.HasArg("joining"), word(t, d))
	case "reconsider":
		q.Reconsider()
	case "withdraw":
		q.Withdraw(word(t, d))
	case "fail":
		q.Fail()
	case "restart":
		*q = q.Restart()
	}
	return outcome(t, q)
}

// outcome says what a write has come to. Of a failed one it says whether the edit may be on a
// copy, and whether other copies may be asked.
func outcome(t *testing.T, q *Write) string {
	t.Helper()
	o, err := q.Outcome()
	out := [...]string{"pending", "committed", "accepted", "refused", "failed"}[o]
	if err != nil {
		out += ": " + err.Error()
	}
	if (o == Refused) != (q.Refusal() != nil) && q.gone == nil {
		t.Errorf("%s, with the refusal %v", out, q.Refusal())
	}
	switch {
	case o != Failed:
		if q.Open() != (o == Pending || o == Accepted) {
			t.Errorf("%s is open: %t", out, q.Open())
		}
	case q.Open():
		out += "; others may be asked"
	case q.Doubt() != nil:
		out += "; a copy may have it"
	}
	return out
}

func (s *script) onRead(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "read":
		var copies, r int
		d.ScanArgs(t, "copies", &copies)
		d.MaybeScanArgs(t, "r", &r)
		s.read, s.heard = NewRead(copies, r), 0
	case "found":
		var a Answer
		for rev := range strings.SplitSeq(d.CmdArgs[0].Key, "/") {
			var pos uint64
			var id string
			if _, err := fmt.Sscanf(rev, "%d-%s", &pos, &id); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			a.Path.Start, a.Path.IDs = max(a.Path.Start, pos), append(a.Path.IDs, id)
		}
		a.Deleted = d.HasArg("deleted")
		s.read.Found(s.heard, a)
		s.heard++
	case "refused":
		s.read.Refused(word(t, d))
		s.heard++
	case "step":
		var pending int
		d.ScanArgs(t, "pending", &pending)
		return step(s.read.Step(pending))
	}
	v, from, err := s.read.Verdict()
	out := [...]string{"asking", "agreed", "newest", "diverged", "absent", "unread"}[v]
	switch v {
	case Asking:
		return fmt.Sprintf("%s, %d wanted", out, s.read.Need())
	case Absent, Unread:
		return fmt.Sprintf("%s: %v", out, err)
	default:
		return fmt.Sprintf("%s: copy %d", out, from)
	}
}

func step(s Step) string { return [...]string{"wait", "another", "again", "enough"}[s] }

func (s *script) onFirst(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "first" {
		var absent int
		d.MaybeScanArgs(t, "absent", &absent)
		s.first = NewFirst(absent)
		return ""
	}
	err := word(t, d)
	out := step(s.first.Take(err))
	if said := s.first.Err(); said != nil {
		out += ", so far " + said.Error()
	}
	return out
}

// local has all copies of a local document answer.
func local(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var all []*shard.LocalDoc
	for i := range d.CmdArgs {
		var l *shard.LocalDoc
		if rev, body, ok := strings.Cut(d.CmdArgs[i].Key, ":"); ok {
			l = &shard.LocalDoc{Body: []byte(body)}
			if _, err := fmt.Sscan(rev, &l.Rev); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
		}
		all = append(all, l)
	}
	l := ChooseLocal(all, Majority(len(all)))
	if l == nil {
		return fmt.Sprintf("none, by %d", LocalVotes(all, l))
	}
	return fmt.Sprintf("%v:%s, by %d", l.Rev, l.Body, LocalVotes(all, l))
}

func cover(t *testing.T, input string) string {
	t.Helper()
	var spans []Span
	lines := strings.Split(input, "\n")
	for _, line := range lines {
		var s Span
		if _, err := fmt.Sscanf(line+" 0", "%x-%x %d", &s.Begin, &s.End, &s.Cost); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		spans = append(spans, s)
	}
	chosen, ok := Cover(spans)
	if !ok {
		return "none"
	}
	var out strings.Builder
	for _, i := range chosen {
		fmt.Fprintf(&out, "%d: %s\n", i, lines[i])
	}
	return out.String()
}

func classify(t *testing.T, input string) string {
	t.Helper()
	var out strings.Builder
	for word := range strings.SplitSeq(input, "\n") {
		what := "not done"
		switch err := said(t, word); {
		case Usable(err) && !Doubtful(err):
			what = "an answer"
		case Doubtful(err):
			what = "may be done"
		}
		fmt.Fprintf(&out, "%s: %s\n", word, what)
	}
	return out.String()
}
