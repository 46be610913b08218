package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"divan/reshard/job"
	"divan/shard/ring"
)

// TestScripts runs the dialogues in testdata, each with a job, the map that it is about, and the
// nodes a, b and c, of which a runs a split or a merge. The answer to a command is what the
// job does, where it is then, and the map when that has changed.
//
//	new split|merge|move [nodes=2]  of the second half of the ring; a merge is of both halves
//	job split|move [range=RANGE] [to=b]  another job, on the same map
//	step [fails]           the job does what is next; it fails
//	run                    the same until it waits or ends
//	crash                  the job is what was written down of it
//	settle                 nodes do what they do by themselves: they fill what joins, and drop what leaves
//	lose RANGE node=a      a full copy loses its files
//	fill RANGE node=a      one joining copy is filled by all full ones, and becomes full
//	replace node=b by=d    a node is lost for good, and another one gets its copies
//	await, stop REASON, resume, disable, enable
//	delete                 the database
//	undo                   the job is cancelled: what it has made goes
//	history
//	halves                 of the ranges of the input
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		var w *world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			before := ""
			switch d.Cmd {
			case "halves":
				return halves(t, d.Input)
			case "new":
				nodes := 1
				d.MaybeScanArgs(t, "nodes", &nodes)
				w = newWorld(t, job.Type(d.CmdArgs[0].Key), nodes)
			default:
				before = w.drawn()
			}
			w.t = t
			out := w.command(t, d)
			if after := w.drawn(); after != before {
				out += after
			}
			return out
		})
	})
}

// command runs a command that changes the job or the map, and returns what to say of it.
func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var node, by string
	d.MaybeScanArgs(t, "node", &node)
	d.MaybeScanArgs(t, "by", &by)
	done, text := "", strings.ReplaceAll(d.Input, "\n", " ")
	switch d.Cmd {
	case "new":
	case "job":
		w.another(t, d)
	case "step":
		done = w.narrated(d.HasArg("fails"))
	case "run":
		for line := ""; line != "wait\n" && (w.job.State == job.New || w.job.State == job.Running); done += line {
			line = w.narrated(false)
		}
	case "crash":
		w.crash()
	case "settle":
		w.group.Settle(w.db)
	case "lose":
		w.change(t, d.CmdArgs[0].Key, node+"@host", ring.StateJoining)
	case "fill":
		w.change(t, d.CmdArgs[0].Key, node+"@host", ring.StateFull)
	case "replace":
		w.replace(t, node+"@host", by+"@host")
	case "await":
		w.job.Await(text, w.now)
	case "stop":
		w.job.Stop(text, w.now, history)
	case "resume":
		w.job.Resume(w.now, history)
	case "disable":
		w.job.Disable(w.now, history)
	case "enable":
		w.job.Enable(w.now, history)
	case "delete":
		w.group.Delete(w.db)
	case "undo":
		changes := w.job.Undo(w.seen())
		done = "propose" + changed(w.shards(), changes) + "\n"
		if err := w.propose(changes); err != nil {
			t.Fatal(err)
		}
	case "history":
		var out strings.Builder
		for _, e := range w.job.History {
			fmt.Fprintln(&out, strings.TrimSpace(string(e.Type)+" "+e.Detail))
		}
		return out.String()
	default:
		t.Fatalf("%s: no command is called %s", d.Pos, d.Cmd)
	}
	if d.Cmd != "crash" {
		w.keep()
	}
	if d.Cmd == "stop" || d.Cmd == "resume" || d.Cmd == "enable" {
		w.at = w.job.Step
	}
	return done + w.status()
}

// narrated does a step, and says what it was.
func (w *world) narrated(fails bool) string {
	shards := w.shards()
	todo := w.step(fails)
	names := map[job.Action]string{
		job.Wait: "wait", job.Add: "add", job.Clone: "copy changes to", job.Index: "index", job.Locals: "copy local documents to",
		job.Propose: "propose", job.Finish: "finish", job.Fail: "fail", 0: "do nothing",
	}
	out := names[todo.Do]
	for _, r := range todo.Ranges {
		out += " " + r.String()
	}
	return out + changed(shards, todo.Changes) + "\n"
}

// changed lists changes of the states of copies.
func changed(shards []ring.Shard, changes []ring.Change) (out string) {
	for _, ch := range changes {
		for _, s := range shards {
			if at := slices.IndexFunc(s.Copies, func(c ring.Copy) bool { return c.ID == ch.Copy }); at >= 0 {
				out += fmt.Sprintf(" %v@%s:%v", s.Range, short(s.Copies[at].Node), ch.To)
			}
		}
	}
	return out
}

func short(node string) string { return strings.TrimSuffix(node, "@host") }

// status says where the job is.
func (w *world) status() string {
	out := fmt.Sprintf("%s at %s", w.job.State, w.job.Step)
	if w.job.Retries > 0 {
		out += fmt.Sprintf(", %d failures", w.job.Retries)
	}
	if w.job.Reason != "" {
		out += ": " + w.job.Reason
	}
	return out + "\n"
}

// drawn is the map of the database.
func (w *world) drawn() string {
	if w.shards() == nil {
		return "  no database\n"
	}
	var out strings.Builder
	for _, s := range w.shards() {
		fmt.Fprintf(&out, "  %v", s.Range)
		for _, c := range s.Copies {
			fmt.Fprintf(&out, " %s:%v", short(c.Node), c.State)
			if c.Instead != "" {
				fmt.Fprintf(&out, "(for %s)", short(c.Instead))
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// shards returns the map of the database, nil when it is deleted.
func (w *world) shards() []ring.Shard {
	if db, ok := w.group.Database(w.db); ok {
		return db.Shards
	}
	return nil
}

// another begins another job on the same map.
func (w *world) another(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	of, text, to := w.job.Source, "80000000-ffffffff", ""
	d.MaybeScanArgs(t, "range", &text)
	d.MaybeScanArgs(t, "to", &to)
	r, err := ring.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	of.Type, of.Range, of.Parts, of.To = job.Type(d.CmdArgs[0].Key), r, nil, to+"@host"
	w.job = job.NewJob(&of, w.now)
	w.at = w.job.Step
}

// change gives a copy another state. One that becomes full was filled by all full copies.
func (w *world) change(t *testing.T, text, node string, to ring.State) {
	t.Helper()
	ch := ring.Change{To: to}
	for _, s := range w.shards() {
		if c, here := s.CopyOn(node); here && s.String() == text {
			ch.Copy = c.ID
		}
		for _, c := range s.Full() {
			if to == ring.StateFull {
				ch.Filled = append(ch.Filled, c.ID)
			}
		}
	}
	if ch.Copy == 0 {
		t.Fatalf("%s has no copy of %s", node, text)
	}
	if err := w.propose([]ring.Change{ch}); err != nil {
		t.Fatal(err)
	}
}

// replace has another node take the place of one that is gone for good.
func (w *world) replace(t *testing.T, node, by string) {
	t.Helper()
	db, _ := w.group.Database(w.db)
	for _, s := range db.Shards {
		if !s.On(node) {
			continue
		}
		in := []ring.Addition{{Range: s.Range, Node: by, Instead: node, Lost: true}}
		if err := w.group.AddCopies(t.Context(), w.db, db.ID, in); err != nil {
			t.Logf("%v: %v", s.Range, err)
		}
	}
}

func halves(t *testing.T, input string) string {
	t.Helper()
	var out strings.Builder
	for text := range strings.SplitSeq(input, "\n") {
		r, err := ring.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, job.Halves(r))
	}
	return out.String()
}
