package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// wholeDesign has functions that read documents as a whole, and the usual view to find
// conflicts.
func wholeDesign() map[string]any {
	return map[string]any{
		"validate_doc_update": "function (doc) { for (var k in doc) { if (doc[k] === 'no') { throw {forbidden: k}; } } }",
		"filters":             map[string]string{"f": "function (doc) { for (var k in doc) { if (doc[k] === 'no') { return false; } } return true; }"},
		"views": map[string]any{
			"members":   map[string]string{"map": "function (doc) { for (var k in doc) { if (k[0] !== '_') { emit(k, doc[k].length); } } }"},
			"conflicts": map[string]string{"map": "function (doc) { if (doc._conflicts) { emit(doc._id, doc._conflicts); } }"},
		},
	}
}

// rows is the answer of a view or a feed.
type rows struct {
	Rows []struct {
		ID    string
		Key   any
		Value any
	}
	Results []struct{ ID string }
}

// largeDocuments has functions read documents of many small objects as a whole.
func largeDocuments(ctx context.Context, w *world) (string, error) {
	const docs, objects = 6, 600_000 // 1.8 MB of {} each
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(s.must(ctx, http.MethodPut, "/large", nil), s.must(ctx, http.MethodPut, "/large/_design/d", wholeDesign())); err != nil {
		return "", err
	}
	list := []byte("[{}" + strings.Repeat(",{}", objects-1) + "]")
	refused := 0
	for i := range docs {
		status, err := s.call(ctx, http.MethodPut, fmt.Sprintf("/large/d%d", i), map[string]any{"v": raw(list)}, nil)
		if err != nil || status != http.StatusCreated {
			refused++
		}
	}
	var view, feed rows
	if _, err := s.call(ctx, http.MethodGet, "/large/_design/d/_view/members", nil, &view); err != nil {
		return "", err
	}
	if _, err := s.call(ctx, http.MethodGet, "/large/_changes?filter=d/f", nil, &feed); err != nil {
		return "", err
	}
	passed := slices.DeleteFunc(feed.Results, func(r struct{ ID string }) bool { return strings.HasPrefix(r.ID, "_") })
	seen := fmt.Sprintf("%d of %d documents refused, %d in the view, %d through the filter", refused, docs, len(view.Rows), len(passed))
	if refused > 0 || len(view.Rows) != docs || len(passed) != docs {
		return seen, errors.New("what CouchDB takes is not taken")
	}
	return seen, nil
}

// raw is JSON that is sent as it is.
type raw []byte

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// conflicts looks for documents with losing revisions through a view, before and after
// one of them goes.
func conflicts(ctx context.Context, w *world) (string, error) {
	const docs = 200
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(s.must(ctx, http.MethodPut, "/pond?q=2", nil), s.must(ctx, http.MethodPut, "/pond/_design/d", wholeDesign())); err != nil {
		return "", err
	}
	first, second := "1-"+strings.Repeat("a", 32), "1-"+strings.Repeat("b", 32)
	for _, rev := range []string{first, second} {
		body := map[string]any{"new_edits": false}
		list := make([]map[string]string, docs)
		for i := range list {
			list[i] = map[string]string{"_id": fmt.Sprintf("d%03d", i), "_rev": rev, "text": rev}
		}
		body["docs"] = list
		if err := s.must(ctx, http.MethodPost, "/pond/_bulk_docs", body); err != nil {
			return "", err
		}
	}
	found := func() (int, error) {
		var view rows
		_, err := s.call(ctx, http.MethodGet, "/pond/_design/d/_view/conflicts", nil, &view)
		return len(view.Rows), err
	}
	before, err := found()
	if err != nil {
		return "", err
	}
	for i := range docs / 2 {
		if err := s.must(ctx, http.MethodDelete, fmt.Sprintf("/pond/d%03d?rev=%s", i, first), nil); err != nil {
			return "", err
		}
	}
	after, err := found()
	if err != nil {
		return "", err
	}
	seen := fmt.Sprintf("%d of %d conflicts in the view, %d when half were resolved", before, docs, after)
	if before != docs || after != docs/2 {
		return seen, errors.New("a view does not find conflicts")
	}
	return seen, nil
}
