package fault

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

func TestIs(t *testing.T) {
	for _, tc := range []struct {
		is   Kind
		want []Kind
	}{
		{NotFound, []Kind{NotFound}},
		{NoDatabase, []Kind{NoDatabase, NotFound}},
		{Deleted, []Kind{Deleted, NotFound}},
		{NoCopy, []Kind{NoCopy}},
		{Conflict, []Kind{Conflict}},
	} {
		err := fmt.Errorf("wrapped: %w", New(tc.is, "a reason"))
		var got []Kind
		for k := Internal; k <= Deleted; k++ {
			if Is(err, k) {
				got = append(got, k)
			}
		}
		if len(got) != len(tc.want) || !Is(err, tc.want[0]) || !Is(err, tc.want[len(tc.want)-1]) || KindOf(err) != tc.is {
			t.Errorf("%d is %v, want %v", tc.is, got, tc.want)
		}
	}
	if Is(nil, NotFound) || Is(errors.New("plain"), NotFound) || !Is(errors.New("plain"), Internal) {
		t.Error("an error without a kind is internal, and no error is none")
	}
}

// TestNewerMap: a refusal tells the generation of the map by which it was, and nothing else
// tells one.
func TestNewerMap(t *testing.T) {
	const newest = 1<<64 - 1
	for _, generation := range []uint64{1, newest} {
		if got := NewerMap(fmt.Errorf("wrapped: %w", NewStaleMap(generation))); got != generation {
			t.Errorf("%d, want %d", got, generation)
		}
	}
	for _, err := range []error{nil, errors.New("7"), &Error{Kind: Conflict, Code: "7"}, &Error{Kind: StaleMap, Code: "x"}, New(StaleMap, "")} {
		if got := NewerMap(err); got != 0 {
			t.Errorf("%#v tells %d", err, got)
		}
	}
}

// declaredKinds returns the highest number of the constants of type Kind.
func declaredKinds(t *testing.T) (highest int) {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Kind" {
			number, err := strconv.Atoi(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			highest = max(highest, number)
		}
		return true
	})
	return highest
}

// TestKinds: each kind has a row, a kind that a newer node sends is an answer that the client
// is told as an internal error, and no answer leaves a doubt.
func TestKinds(t *testing.T) {
	const unused = 30
	for k := Internal; k <= Misconfigured; k++ {
		r := kinds[min(int(k), len(kinds)-1)]
		if (r.status < 400 || r.status > 599 || r.name == "") != (k == unused) || k.Status() < 400 {
			t.Errorf("%d: %+v", k, r)
		}
		if r.class == Answer && r.doubtful {
			t.Errorf("%d is an answer and doubtful", k)
		}
	}
	newer := fmt.Errorf("wrapped: %w", New(Kind(len(kinds)), ""))
	if declared := declaredKinds(t); len(kinds) != declared+1 || int(Misconfigured) != declared {
		t.Errorf("%d rows for kinds up to %d", len(kinds), declared)
	}
	if KindOf(newer).Status() != 500 || ClassOf(newer) != Answer || Doubtful(newer) || RepeatOf(newer) != Unforeseen || OfDesign(newer) {
		t.Error("a kind of a newer node")
	}
	if ClassOf(nil) != Answer || Doubtful(nil) || ClassOf(errors.New("plain")) != Trouble || !Doubtful(errors.New("plain")) {
		t.Error("no error, or one without a kind")
	}
}
