package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"divan/storage/pause"
)

var databaseName = regexp.MustCompile(`\{\{db\d?\}\}`)

// shortHistories reports whether a transcript limits histories to one revision. A copy that
// lags gets one that does not join what it has, and takes it for a conflict.
func shortHistories(text string) bool { return strings.Contains(text, "/_revs_limit\n\n1\n") }

// settle waits, before and after a replication, until the nodes of a cluster have the same
// revisions of the databases that it names: any node may run it, or be asked afterwards, and
// reads its own copies, which may lack what was written through another node a moment ago. Whether that
// is brought in the end is not for transcripts to show. With short histories it waits at each
// request of a document. The error is that they do not become the same.
func settle(ctx context.Context, nodes []*url.URL, s *step, n *names, short bool) error {
	named := ""
	switch {
	case s.method == http.MethodPost && s.path == "/_replicate":
		named = s.body
	case short && strings.HasPrefix(s.path, "/{{db}}/") && !strings.HasPrefix(s.path, "/{{db}}/_"):
		named = "{{db}}"
	}
	for _, db := range databaseName.FindAllString(named, -1) {
		for end := time.Now().Add(persistent * time.Second); ; {
			var seen []string
			for _, node := range nodes {
				seen = append(seen, leaves(ctx, node, db, n))
			}
			if seen = slices.Compact(seen); len(seen) < 2 {
				break
			}
			if time.Now().After(end) || pause.For(ctx, tryAgain) != nil {
				return fmt.Errorf("the nodes do not become the same: %q", seen)
			}
		}
	}
	return nil
}

// leaves returns the leaves of the documents of a database on a node, or why there are
// none.
func leaves(ctx context.Context, node *url.URL, db string, n *names) string {
	a, err := send(ctx, node, &step{method: http.MethodGet, path: "/" + db + "/_changes?style=all_docs"}, n)
	if err != nil {
		return err.Error()
	}
	v, _ := decode(string(a.body)) // no object without an answer in JSON
	o, _ := v.(object)
	results, _ := o.get("results")
	rows, _ := results.([]any)
	var out []string
	for _, r := range rows {
		row, _ := r.(object)
		id, _ := row.get("id")
		changes, _ := row.get("changes")
		out = append(out, fmt.Sprint(id, changes))
	}
	slices.Sort(out)
	return fmt.Sprint(a.status, strings.Join(out, " "))
}
