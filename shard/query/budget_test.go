package query

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"

	"divan/storage/fault"
)

// under returns a selector with conditions about the field of a path with n
// names.
func under(names int, condition string, times int) string {
	return `{"` + strings.Repeat("a.", names-1) + `a":{"$or":[` + strings.Repeat(condition+",", times-1) + condition + `]}}`
}

// TestGreedySelectors has texts of less than a megabyte, most of them far less,
// that would take more than selectors may.
func TestGreedySelectors(t *testing.T) {
	for name, selector := range map[string]string{
		"a path to many conditions": under(12_000, `{"b":1}`, 6_000),
		"a path to many values":     under(12_000, `1`, 6_000),
		"a long name":               `{"` + strings.Repeat("a", 30_000) + `":` + under(1, `{"b":1}`, 6_000) + `}`,
		"paths on the way down":     strings.Repeat(`{"`+strings.Repeat("a", 300_000/maxDepth)+`":`, maxDepth) + "1" + strings.Repeat("}", maxDepth),
		"bare values":               under(1, `1`, 50_000),
		"empty lists":               `{"$or":[` + strings.Repeat(`{"$or":[]},`, 100_000) + `{}]}`,
		"empty sets":                under(1, `{"$in":[]}`, 30_000),
		"repetitions":               under(1, `{"$regex":".{1000}"}`, 5_000),
		"large classes":             under(1, `{"$regex":"`+strings.Repeat(`\\pL`, 1_000)+`"}`, 10),
		"anchored classes":          under(1, `{"$regex":"^\\pL{400}$"}`, 1_000),
		"anchored choices":          under(1, `{"$regex":"^\\pL{0,300}$"}`, 1_000),
		"small patterns":            under(1, `{"$regex":"a"}`, 20_000),
		"patterns that look around": under(1, `{"$regex":"(?=a)"}`, 6_000),
		"characters of many pages":  under(1, `{"$regex":"(?=a)一伀倀儀刀匀吀唀嘀圀堀夀娀嬀尀崀帀开怀愀"}`, 1_000),
	} {
		_, err := Parse([]byte(selector))
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.InvalidSelector || refusal.Code != "invalid_selector" ||
			!strings.HasPrefix(refusal.Reason, "The selector is too large") {
			t.Errorf("%s, in %d bytes: %.100v", name, len(selector), err)
		}
	}
}

// TestLargeSelectors has those that people do write, and more.
func TestLargeSelectors(t *testing.T) {
	var ids strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&ids, `"user-%09d",`, i)
	}
	for name, selector := range map[string]string{
		"many ids":        `{"_id":{"$in":[` + ids.String() + `"x"]}}`,
		"many conditions": under(4, `{"name":{"$gt":"a","$lt":"b"}}`, 5_000),
		"a long path":     `{"` + strings.Repeat("member.", 50_000) + `a":1}`,
		"words":           under(1, `{"$regex":"(?i)^some words|[a-z]+ more$"}`, 1_000),
		"addresses":       under(1, `{"$regex":"^[a-zA-Z0-9._%+-]{1,64}@([a-z0-9-]{1,63}\\.)+[a-z]{2,63}$"}`, 50),
		"letters":         under(1, `{"$regex":"^\\pL{1,64}$"}`, 10),
		"passwords":       under(1, `{"$regex":"^(?=.*\\d)(?=.*[a-z])(?!.*密码).{8,64}$"}`, 500),
	} {
		if _, err := Parse([]byte(selector)); err != nil {
			t.Errorf("%s, in %d bytes: %.200v", name, len(selector), err)
		}
	}
}

// TestMemoryOfSelectors compares what selectors keep with the most that they
// may have taken from the budget: they are as large as Parse lets them be.
func TestMemoryOfSelectors(t *testing.T) {
	for _, c := range []struct {
		names     int
		condition string
	}{
		{1, `1`},
		{1, `"x"`},
		{1, `{"b":1}`},
		{1, `{"$gt":1,"$lt":2}`},
		{1, `{"$in":[1,"a"]}`},
		{1, `{"$all":[1]}`},
		{500, `1`},
		{500, `{"b":{"$exists":true}}`},
		{1, `{"$regex":"a"}`},
		{1, `{"$regex":"^a"}`},
		{1, `{"$regex":".{1000}"}`},
		{1, `{"$regex":"\\pL\\pL\\pL"}`},
		{1, `{"$regex":"^\\pL{400}$"}`},
		{1, `{"$regex":"^\\pL{0,300}$"}`},
		{1, `{"$regex":"(?=a)()()()()()()()()"}`},
		{1, `{"$regex":"(?=a)一伀倀儀"}`},
	} {
		times := 1
		for {
			if _, err := Parse([]byte(under(c.names, c.condition, 2*times))); err != nil {
				break
			}
			times *= 2
		}
		text := []byte(under(c.names, c.condition, times))
		before := heap()
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.matches([]byte(`{"a":"` + strings.Repeat("a", 100) + `"}`))
		if kept := heap() - before; kept > maxMemory*3/2 {
			t.Errorf("%d conditions %s at %d names: %d bytes", times, c.condition, c.names, kept)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(text)
	}
}

// TestMatchKeepsNoStack has a pattern that needs megabytes for a text that is not long. The
// match has all the time that it needs: on a busy machine that may be more than
// matchTime, and one that is cut off would keep less.
func TestMatchKeepsNoStack(t *testing.T) {
	s, err := Parse([]byte(`{"a":{"$regex":"(?=a)(?:a|b)*"}}`))
	if err != nil {
		t.Fatal(err)
	}
	s.root.kids[0].regex.full.MatchTimeout = regexp2.DefaultMatchTimeout
	before := heap()
	if !s.matches([]byte(`{"a":"` + strings.Repeat("a", 200_000) + `"}`)) {
		t.Error("no match")
	}
	if kept := heap() - before; kept > 1<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	runtime.KeepAlive(s)
}

// heap returns the bytes that are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // for what a pool keeps until then
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestWeightBoundsPrograms(t *testing.T) {
	atoms := []string{"", "a", "aé", ".", `\pL`, "(?i:k)", "(a|bc|d*)", "^$", `(x?)\b`}
	repeats := []string{"", "*", "+?", "?", "{0}", "{3}", "{2,}", "{0,}", "{0,4}", "{2,6}"}
	for _, a := range atoms {
		for _, b := range atoms {
			for _, inner := range repeats {
				for _, outer := range repeats {
					text := "(?:(?:" + a + b + ")" + inner + "|" + b + ")" + outer
					tree, err := syntax.Parse(text, syntax.Perl)
					if err != nil {
						t.Fatal(err)
					}
					var w weight
					if got, size := w.add(tree)+2, programSize(text); got < size {
						t.Errorf("%s: %d instructions, at most %d expected", text, size, got)
					}
				}
			}
		}
	}
}
