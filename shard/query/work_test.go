package query

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"divan/storage/doc"
	"divan/storage/fault"
)

// matches is Match without limits that a test could meet.
func (s *Selector) matches(document []byte) bool {
	ok, err := s.Match(NewWork(context.Background(), nil), document)
	if err != nil {
		panic(err)
	}
	return ok
}

// matches is match likewise.
func (p *pattern) matches(v []byte) bool {
	w := NewWork(context.Background(), nil)
	w.begin()
	ok := p.match(w, v)
	if w.err != nil {
		panic(w.err)
	}
	return ok
}

// attack are selectors whose matching used to take minutes, and a document of 5 KB.
func attack() (selectors map[string]string, document []byte) {
	var choices strings.Builder
	for range 2000 {
		choices.WriteString(`{"a":{"$regex":"(?:[ab]{0,9}[bc]{0,9}){3}x"}},`)
	}
	return map[string]string{
		"back-references":   `{"a":{"$regex":"(a+)\\1b"}}`,
		"look-around":       `{"a":{"$regex":"^(?=a)(a+)+$"}}`,
		"many patterns":     `{"$or":[` + choices.String() + `{"b":1}]}`,
		"negated":           `{"$nor":[` + choices.String() + `{"a":{"$regex":"(a+)\\1b"}}]}`,
		"of every element":  `{"l":{"$elemMatch":{"$regex":"(a+)\\1b"}}}`,
		"of every key":      `{"o":{"$keyMapMatch":{"$regex":"(a+)\\1b"}}}`,
		"in the other half": `{"$not":{"a":{"$regex":"(a+)\\1b"}}}`,
	}, []byte(`{"a":"` + strings.Repeat("a", 5000) + `!","l":["` + strings.Repeat("a", 5000) + `"],"o":{"` + strings.Repeat("a", 5000) + `":1}}`)
}

// TestExpensiveSelectors has one request match an expensive selector against 300
// documents: it must be told, soon, that it is too expensive.
func TestExpensiveSelectors(t *testing.T) {
	selectors, document := attack()
	for name, selector := range selectors {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]byte(selector))
			if err != nil {
				t.Fatal(err)
			}
			w := NewWork(t.Context(), nil)
			for i := 0; i < 300 && err == nil; i++ {
				var ok bool
				if ok, err = s.Match(w, document); ok {
					t.Fatal("a match")
				}
			}
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Kind != fault.InvalidSelector || refusal.Code != "selector_too_expensive" {
				t.Errorf("%v", err)
			}
			if w.heavy > 2*requestWork {
				t.Errorf("it counts as %v", w.heavy)
			}
		})
	}
}

// TestMatchIsBounded has single documents that would take very long.
func TestMatchIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector makes matching ten times slower than its limits are made for")
	}
	long := strings.Repeat("b", 4<<20)
	for name, c := range map[string]struct{ selector, document string }{
		"a large program":  {`{"a":{"$regex":"(?:[ab]{0,50}[bc]{0,50}){10}x"}}`, `{"a":"` + long + `"}`},
		"and escapes":      {`{"a":{"$regex":"(?:[ab]{0,50}[bc]{0,50}){10}x"}}`, `{"a":"\n` + long + `x"}`},
		"paths":            {`{"$or":[` + strings.Repeat(`{"a.b":1},`, 2000) + `{"a.b":1}]}`, `{"a":{"c":"` + long + `"}}`},
		"keys":             {`{"$or":[` + strings.Repeat(`{"a":{"$gt":"é"}},`, 2000) + `{"a":2}]}`, `{"a":"` + long + `"}`},
		"arrays":           {`{"$or":[` + strings.Repeat(`{"a":{"$all":[2,3]}},`, 2000) + `{"a":2}]}`, `{"a":["` + long + `"]}`},
		"nested":           {strings.Repeat(`{"$or":[`, 9) + strings.Repeat(`{"a":{"$elemMatch":{"$elemMatch":{"$in":["y"]}}}},`, 2000) + `{"b":1}` + strings.Repeat("]}", 9), `{"a":[["` + long + `"]]}`},
		"all the elements": {`{"$or":[` + strings.Repeat(`{"a":{"$allMatch":{"$type":"string"}}},`, 9000) + `{"b":1}]}`, `{"a":[` + strings.Repeat(`"b",`, 1<<20) + `1]}`},
	} {
		s, err := Parse([]byte(c.selector))
		if err != nil {
			t.Fatal(err)
		}
		w := NewWork(t.Context(), nil)
		if _, err = s.Match(w, []byte(c.document)); !fault.Is(err, fault.InvalidSelector) || w.spent > 5*documentWork {
			t.Errorf("%s: %v, it counts as %v", name, err, w.spent)
		}
	}
}

// TestRequestIsBounded has a request take nearly all it may before a document that takes
// no longer than one may.
func TestRequestIsBounded(t *testing.T) {
	s, err := Parse([]byte(`{"$or":[` + strings.Repeat(`{"a":{"$all":[2,3]}},`, 100) + `{"a":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	document := []byte(`{"a":["` + strings.Repeat("b", 200_000) + `"]}`)
	w := NewWork(t.Context(), nil)
	if ok, err := s.Match(w, document); ok || err != nil || w.heavy < 10*usualWork {
		t.Fatalf("%v, %v, it took %v", ok, err, w.heavy)
	}
	w.heavy = requestWork - w.heavy/2
	if _, err := s.Match(w, document); !fault.Is(err, fault.InvalidSelector) || !strings.Contains(fault.Reason(err), "documents that take long") {
		t.Errorf("%v", err)
	}
	// An index has to have all documents: each counts for itself.
	key, err := ParseKey([]byte(`{"fields":{"a":"asc"},"partial_filter_selector":{"$or":[` + strings.Repeat(`{"a":{"$all":[2,3]}},`, 100) + `{"a":2}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.heavy = requestWork
	if _, ok, err := key.Append(w, nil, document); ok || err != nil {
		t.Errorf("for an index: %v, %v", ok, err)
	}
}

// TestMatchEndsWithItsRequest matches for a client that left a moment ago.
func TestMatchEndsWithItsRequest(t *testing.T) {
	selectors, document := attack()
	s, err := Parse([]byte(selectors["many patterns"]))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := NewWork(ctx, nil)
	if _, err := s.Match(w, document); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if took := documentWork - w.left; took > wholeWork { // one pattern
		t.Errorf("it went on for %v", took)
	}
	filter, err := Compile([]byte(selectors["many patterns"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filter(ctx, [][]byte{document}); !errors.Is(err, context.Canceled) {
		t.Errorf("a feed: %v", err)
	}
}

// TestUsualWorkIsUnbounded has a request look at many documents, at little cost each:
// by a clock that says so, since a busy machine makes some of them take long.
func TestUsualWorkIsUnbounded(t *testing.T) {
	s, err := Parse([]byte(`{"$or":[{"a.b":{"$regex":"x"}},{"name":{"$regex":"(?=.*y)(.)\\1"}},{"tags":{"$all":["blue"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWork(t.Context(), nil)
	clock := time.Now()
	w.now = func() time.Time {
		clock = clock.Add(usualWork / 10)
		return clock
	}
	document := benchDoc()
	for range 20_000 {
		if ok, err := s.Match(w, document); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if w.heavy != 0 || w.spent < requestWork/4 {
		t.Errorf("%v of %v count", w.heavy, w.spent)
	}
}

// TestPatternsOfLongTexts compares what is matched in one go with what is matched
// as it is read.
func TestPatternsOfLongTexts(t *testing.T) {
	for _, c := range []struct {
		pattern, end string
		want         bool
	}{
		{`(?:[ab]{0,9}c){20}x$`, strings.Repeat("aabc", 20) + "x", true},
		{`(?:[ab]{0,9}c){20}x$`, strings.Repeat("aabc", 20) + "y", false},
		{`(?:[ab]{0,9}é){20}x$`, strings.Repeat("abé", 20) + "x\n", true},
		{`ü(?:[ab]{0,9}c){20}x`, "ü" + strings.Repeat("aabc", 20) + "x", true},
		{`ü(?:[ab]{0,9}c){20}x`, strings.Repeat("aabc", 20) + "x", false},
	} {
		p, ok := compile(c.pattern)
		if !ok {
			t.Fatal(c.pattern)
		}
		for _, length := range []int{0, 1000, 50_000, 200_000} {
			w := NewWork(t.Context(), nil)
			w.begin()
			w.left = time.Hour // a busy machine may need more than the limit
			got := p.match(w, doc.AppendString(nil, strings.Repeat("z", length)+c.end))
			if got != c.want || w.err != nil {
				t.Errorf("%s behind %d: %v %v", c.pattern, length, got, w.err)
			}
		}
	}
}

// TestGate has more requests match for long than there are places.
func TestGate(t *testing.T) {
	gate := NewGate(4)
	selectors, document := attack()
	costly, err := Parse([]byte(selectors["look-around"]))
	if err != nil {
		t.Fatal(err)
	}
	cheap, err := Parse([]byte(`{"b":{"$regex":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for range cap(gate) {
		gate <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := costly.Match(NewWork(ctx, gate), document); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a costly document does not wait: %v", err)
	}
	if _, err := cheap.Match(NewWork(t.Context(), gate), document); err != nil {
		t.Errorf("a cheap document waits: %v", err)
	}
	<-gate
	if _, err := costly.Match(NewWork(t.Context(), gate), document); !fault.Is(err, fault.InvalidSelector) {
		t.Errorf("with a place: %v", err)
	}
	if len(gate) != cap(gate)-1 || cap(gate) != 2 {
		t.Errorf("%d of %d places are taken", len(gate), cap(gate))
	}
}
