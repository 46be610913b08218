package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
)

// holding is the content of a database: for each document its leaves with their history,
// body and attachments, as text that can be compared.
type holding map[string]map[string]string

// bulkGetSize is how many revisions one request asks for.
const bulkGetSize = 200

// held reads a whole database. Digests are compared only of attachments that no server
// compresses: for the others CouchDB takes the digest from the compressed bytes, PouchDB
// from the content, so that their content is read.
func (s *server) held(ctx context.Context, db string) (holding, error) {
	out := holding{}
	leaves, err := s.leaves(ctx, db)
	if err != nil {
		return nil, err
	}
	var wanted []map[string]string
	flush := func() error {
		err := s.bulkGet(ctx, db, wanted, out)
		wanted = wanted[:0]
		return err
	}
	for id, revs := range leaves {
		out[id] = map[string]string{}
		for _, rev := range revs {
			wanted = append(wanted, map[string]string{"id": id, "rev": rev})
		}
		if len(wanted) >= bulkGetSize {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return out, flush()
}

// leaves returns the leaves of every document, sorted.
func (s *server) leaves(ctx context.Context, db string) (map[string][]string, error) {
	var changes struct {
		Results []struct {
			ID      string `json:"id"`
			Changes []struct {
				Rev string `json:"rev"`
			} `json:"changes"`
		} `json:"results"`
	}
	if err := s.call(ctx, http.MethodGet, "/"+db+"/_changes?style=all_docs", nil, &changes); err != nil {
		return nil, err
	}
	out := make(map[string][]string, len(changes.Results))
	for _, r := range changes.Results {
		var revs []string
		for _, c := range r.Changes {
			revs = append(revs, c.Rev)
		}
		sort.Strings(revs)
		out[r.ID] = revs
	}
	return out, nil
}

// bulkGet reads revisions into out.
func (s *server) bulkGet(ctx context.Context, db string, wanted []map[string]string, out holding) error {
	if len(wanted) == 0 {
		return nil
	}
	var answer struct {
		Results []struct {
			ID   string `json:"id"`
			Docs []struct {
				OK    map[string]any `json:"ok"`
				Error any            `json:"error"`
			} `json:"docs"`
		} `json:"results"`
	}
	if err := s.call(ctx, http.MethodPost, "/"+db+"/_bulk_get?revs=true", map[string]any{"docs": wanted}, &answer); err != nil {
		return err
	}
	for _, r := range answer.Results {
		for _, d := range r.Docs {
			if d.OK == nil {
				return fmt.Errorf("%s: %s: %v", s.name, r.ID, d.Error)
			}
			rev, ok := d.OK["_rev"].(string)
			if !ok {
				return fmt.Errorf("%s: %s has no _rev", s.name, r.ID)
			}
			text, err := s.summary(ctx, db, r.ID, rev, d.OK)
			if err != nil {
				return err
			}
			out[r.ID][rev] = text
		}
	}
	return nil
}

// summary is one revision as text.
func (s *server) summary(ctx context.Context, db, id, rev string, document map[string]any) (string, error) {
	atts, ok := document["_attachments"].(map[string]any)
	if !ok {
		text, err := json.Marshal(document)
		return string(text), err
	}
	told := map[string]any{}
	for name, value := range atts {
		a, ok := value.(map[string]any)
		if !ok {
			return "", fmt.Errorf("%s: %s: odd attachment %s", s.name, id, name)
		}
		told[name] = []any{a["content_type"], a["length"], a["digest"]}
		if kind, ok := a["content_type"].(string); ok && strings.HasPrefix(kind, "text/") {
			hash, err := s.hash(ctx, attachmentPath(db, id, name)+"?rev="+rev)
			if err != nil {
				return "", err
			}
			told[name] = []any{kind, a["length"], hash}
		}
	}
	document["_attachments"] = told
	text, err := json.Marshal(document)
	return string(text), err
}

// hash returns that of an attachment's content.
func (s *server) hash(ctx context.Context, path string) (string, error) {
	body, err := s.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // read to its end
	h := sha256.New()
	_, err = io.Copy(h, body)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// compare reads two databases and returns how many revisions they both hold.
func compare(ctx context.Context, a *server, dbA string, b *server, dbB string) (int, error) {
	heldA, err := a.held(ctx, dbA)
	if err != nil {
		return 0, err
	}
	heldB, err := b.held(ctx, dbB)
	if err != nil {
		return 0, err
	}
	return differ(heldA, heldB)
}

// differ returns the number of revisions, or the first differences.
func differ(a, b holding) (int, error) {
	var errs []error
	n := 0
	for id, revs := range a {
		for rev, text := range revs {
			n++
			if other, ok := b[id][rev]; !ok {
				errs = append(errs, fmt.Errorf("%s %s is only in the first", id, rev))
			} else if other != text {
				errs = append(errs, fmt.Errorf("%s %s:\n  %.500s\n  %.500s", id, rev, text, other))
			}
		}
	}
	for id, revs := range b {
		for rev := range revs {
			if _, ok := a[id][rev]; !ok {
				errs = append(errs, fmt.Errorf("%s %s is only in the second", id, rev))
			}
		}
	}
	if len(errs) > 0 {
		return 0, fmt.Errorf("%d differences: %w", len(errs), errors.Join(errs[:min(len(errs), 5)]...))
	}
	return n, nil
}
