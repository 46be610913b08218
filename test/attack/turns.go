package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// watchFunctions is watch with an innocent client that has functions: each of its
// writes is validated, and it asks a view, a list and filtered feeds.
func (w *world) watchFunctions(ctx context.Context, s *server) error {
	if err := s.must(ctx, http.MethodPut, "/kept?q=2", nil); err != nil {
		return err
	}
	design := map[string]any{
		"validate_doc_update": "function (n, o, u, s) { if (n.bad) { throw({forbidden: 'bad'}); } }",
		"views":               map[string]any{"v": map[string]any{"map": "function (doc) { emit(doc._id, 1); }", "reduce": "function (keys, values) { return sum(values); }"}},
		"lists":               map[string]any{"l": "function (head, req) { var row; while (row = getRow()) { send(row.key); } }"},
		"shows":               map[string]any{"s": "function (doc, req) { return doc.text; }"},
		"filters":             map[string]any{"f": "function (doc, req) { return doc.text !== ''; }"},
	}
	if err := s.must(ctx, http.MethodPut, "/kept/_design/own", design); err != nil {
		return err
	}
	w.functions = true
	return w.watch(ctx, s)
}

// usesOf returns what an innocent client with functions asks after it has written a
// document.
func usesOf(k int, id string) string {
	uses := []string{
		"_design/own/_view/v?reduce=false&descending=true&limit=5", "_design/own/_list/l/v?reduce=false&descending=true&limit=5",
		"_changes?filter=own/f&descending=true&limit=5", "_changes?filter=_view&view=own/v&descending=true&limit=5", "_design/own/_show/s/" + id,
	}
	return uses[k%len(uses)]
}

// harass has n connections ask for a path of a database that is not the innocent
// client's, as a member of it.
func (w *world) harass(ctx context.Context, s *server, n int, path func(i int) string) (string, error) {
	if err := w.watchFunctions(ctx, s); err != nil {
		return "", err
	}
	var answers statuses
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, n, func(ctx context.Context, i int) {
			for ctx.Err() == nil {
				status, _ := s.call(ctx, http.MethodGet, path(i), nil, nil)
				if ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	return fmt.Sprintf("answers %v", &answers), w.unrefused(ctx, s)
}

// unrefused checks that nothing was refused to the innocent client.
func (w *world) unrefused(ctx context.Context, s *server) error {
	if w.meanwhile.Refused > 0 {
		return fmt.Errorf("%d requests of the innocent client were refused", w.meanwhile.Refused)
	}
	return back(ctx, s)
}

func loopingShows(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	design := map[string]any{"shows": map[string]any{"s": "function () { while (true) {} }"}}
	if err := s.must(ctx, http.MethodPut, "/tempting/_design/loop", design); err != nil {
		return "", err
	}
	return w.harass(ctx, s, 60, func(int) string { return "/tempting/_design/loop/_show/s" })
}

func loopingViews(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	for i := range 40 {
		code := fmt.Sprintf("function (doc) { while (true) {} emit(%d); }", i)
		design := map[string]any{"views": map[string]any{"v": map[string]any{"map": code}}}
		if err := s.must(ctx, http.MethodPut, fmt.Sprintf("/tempting/_design/loop-%d", i), design); err != nil {
			return "", err
		}
	}
	return w.harass(ctx, s, 40, func(i int) string { return fmt.Sprintf("/tempting/_design/loop-%d/_view/v", i) })
}

// loopingWrites saves design documents whose functions do not even end when they are
// compiled, and large documents that a validation function never ends with, while another
// database gets design documents and large documents as well.
func loopingWrites(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	design := map[string]any{"validate_doc_update": "function (n) { while (n.v) {} }"}
	if err := s.must(ctx, http.MethodPut, "/tempting/_design/loop", design); err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/other?q=2", nil); err != nil {
		return "", err
	}
	design = map[string]any{"validate_doc_update": "function (n) { if (n.bad) { throw({forbidden: 'bad'}); } }"}
	if err := s.must(ctx, http.MethodPut, "/other/_design/own", design); err != nil {
		return "", err
	}
	if err := w.watchFunctions(ctx, s); err != nil {
		return "", err
	}
	var longest time.Duration
	written := 0
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 21, func(ctx context.Context, i int) {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				switch {
				case i == 0 && n%2 == 0:
					err = s.must(ctx, http.MethodPut, fmt.Sprintf("/other/_design/d-%d", n), viewOf("function (doc) { emit(doc._id); }"))
				case i == 0:
					err = s.must(ctx, http.MethodPut, fmt.Sprintf("/other/large-%d", n), emptyObjects(100_000))
				case i%2 == 0:
					_, _ = s.call(ctx, http.MethodPut, fmt.Sprintf("/tempting/_design/l-%d-%d", i, n), viewOf("(function () { while (true) {} })()"), nil) // refused
				default:
					_, _ = s.call(ctx, http.MethodPut, fmt.Sprintf("/tempting/large-%d-%d", i, n), emptyObjects(150_000), nil) // refused
				}
				switch {
				case i == 0 && err != nil:
					return
				case i == 0:
					longest = max(longest, time.Since(began))
					written++
				}
			}
		})
	})
	seen := fmt.Sprintf("another database got %d, in %v at most", written, longest.Round(time.Millisecond))
	if err != nil && (written == 0 || !errors.Is(err, context.DeadlineExceeded)) {
		return seen, err
	}
	if longest > otherLimit {
		return seen, fmt.Errorf("another database had to wait for more than %v", otherLimit)
	}
	return seen, w.unrefused(ctx, s)
}

// otherLimit is how long a large write to another database may take while its own
// functions have large ones to check.
const otherLimit = 3 * time.Second

// viewOf is a design document with a view.
func viewOf(code string) map[string]any {
	return map[string]any{"views": map[string]any{"v": map[string]any{"map": code}}}
}

// emptyObjects is a document that takes as much memory as there can be of it.
func emptyObjects(n int) map[string]any { return map[string]any{"v": make([]struct{}, n)} }

// unreadLists is played by a user who may only read the database.
func unreadLists(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	design := map[string]any{
		"views": map[string]any{"v": map[string]any{"map": "function (doc) { emit(null, doc.text); }"}},
		"lists": map[string]any{"l": "function (head, req) { var row; while (row = getRow()) { for (var i = 0; i < 50; i++) { send(row.value); } } }"},
	}
	if err := s.must(ctx, http.MethodPut, "/tempting/_design/list", design); err != nil {
		return "", err
	}
	mary := map[string]any{"name": "mary", "password": "had a little lamb", "roles": []string{}, "type": "user"}
	if err := s.must(ctx, http.MethodPut, "/_users/org.couchdb.user:mary", mary); err != nil {
		return "", err
	}
	members := map[string]any{"members": map[string]any{"names": []string{"mary"}, "roles": []string{}}}
	if err := s.must(ctx, http.MethodPut, "/tempting/_security", members); err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodGet, "/tempting/_design/list/_view/v?limit=1", nil); err != nil {
		return "", err
	}
	if err := w.watchFunctions(ctx, s); err != nil {
		return "", err
	}
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 30, func(ctx context.Context, i int) {
			c, err := dial(ctx, i, s.host)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }() // the server may have closed it
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.host+"/tempting/_design/list/_list/l/v", http.NoBody)
			if err != nil {
				return
			}
			r.SetBasicAuth("mary", "had a little lamb")
			if r.Write(c) == nil {
				<-ctx.Done()
			}
		})
	})
	return "", w.unrefused(ctx, s)
}
