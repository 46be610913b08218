package replicator

import (
	"fmt"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
)

// A document that has not been tried yet does not wait until all those were tried
// again whose sources are silent.
func TestFreshDocumentsComeFirst(t *testing.T) {
	now := time.Now()
	filtered := &spec.Spec{Filter: endpoint.Filter{Function: "d/f"}}
	s := &Documents{}
	s.mu.docs = map[docKey]*document{}
	add := func(id string, d document) *document {
		d.key = docKey{"_replicator", id}
		d.spec = filtered
		s.mu.docs[d.key] = &d
		return &d
	}
	for i := range 50 {
		add(fmt.Sprint("silent", i), document{attempts: 1 + i, due: now.Add(-time.Hour)})
		add(fmt.Sprint("running", i), document{job: &job{}, due: now.Add(-time.Hour)})
	}
	fresh := add("fresh", document{})
	later := add("later", document{due: now.Add(time.Minute)})
	for _, want := range []int{0, 1, 3, 97} {
		got, next := s.due(now, want)
		if len(got) != want || want == 1 && got[0] != fresh || !next.Equal(later.due) {
			t.Errorf("%d documents, not %d; the next at %v", len(got), want, next)
		}
		for _, d := range got {
			if !d.resolving {
				t.Errorf("%s is not marked", d.key.id)
			}
		}
	}
	if got, _ := s.due(now, 100); len(got) != 0 {
		t.Errorf("%d documents are read twice", len(got))
	}
}
