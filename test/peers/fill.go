package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// bulkSize is how many documents a request brings.
const bulkSize = 500

// generator makes documents of every kind that replication has to carry.
type generator struct {
	rng *rand.Rand
	n   int
}

func newGenerator(seed uint64) *generator {
	return &generator{rng: rand.New(rand.NewPCG(seed, 1))}
}

// revs draws a history: ids of n generations, newest first.
func (g *generator) revs(n int) []string {
	out := make([]string, n)
	for i := range out {
		var id [16]byte
		for at := range id {
			id[at] = byte(g.rng.Uint32())
		}
		out[i] = hex.EncodeToString(id[:])
	}
	return out
}

// document makes a document with one history.
func (g *generator) document(id string, history []string) map[string]any {
	return map[string]any{
		"_id": id, "_rev": fmt.Sprintf("%d-%s", len(history), history[0]),
		"_revisions": map[string]any{"start": len(history), "ids": history},
		"n":          g.rng.IntN(1000), "text": strings.Repeat("lorem ipsum ", g.rng.IntN(60)), "ü": "€ 😀 \u0001 \"",
		"list": []any{1, nil, true, map[string]any{"deep": []int{g.rng.IntN(9)}}},
	}
}

// next makes the revisions of one document.
func (g *generator) next() []map[string]any {
	i := g.n
	g.n++
	id := fmt.Sprintf("doc-%07d", i)
	switch i % 20 {
	case 0: // a conflict of three branches, one of them deleted
		root := g.revs(1)
		long := g.document(id, append(g.revs(2), root...))
		short := g.document(id, append(g.revs(1), root...))
		gone := g.document(id, append(g.revs(1), root...))
		gone["_deleted"] = true
		return []map[string]any{long, short, gone}
	case 1:
		gone := g.document(id, g.revs(3))
		gone["_deleted"] = true
		return []map[string]any{gone}
	case 2:
		return []map[string]any{g.attached(id, "one byte", "application/octet-stream", []byte{byte(i)})}
	case 3:
		return []map[string]any{g.attached(id, "some/text ü.txt", "text/plain", bytes.Repeat([]byte("text "), 1+g.rng.IntN(4000)))}
	case 4:
		return []map[string]any{g.document(fmt.Sprintf("with/a/slash %d?&+%%", i), g.revs(1))}
	case 5:
		return []map[string]any{g.document(fmt.Sprintf("ünicode-€-😀-日本-%d", i), g.revs(2))}
	case 6:
		return []map[string]any{g.document(id, g.revs(25))}
	}
	return []map[string]any{g.document(id, g.revs(1+g.rng.IntN(3)))}
}

// attached makes a document with an attachment.
func (g *generator) attached(id, name, contentType string, content []byte) map[string]any {
	d := g.document(id, g.revs(1))
	d["_attachments"] = map[string]any{
		name: map[string]any{"content_type": contentType, "revpos": 1, "data": base64.StdEncoding.EncodeToString(content)},
	}
	return d
}

// fill writes n documents, a design document, and attachments up to largest MB.
func (s *server) fill(ctx context.Context, db string, g *generator, n, largest int) error {
	for n > 0 {
		var docs []map[string]any
		for ; n > 0 && len(docs) < bulkSize; n-- {
			docs = append(docs, g.next()...)
		}
		var refused []any
		if err := s.call(ctx, http.MethodPost, "/"+db+"/_bulk_docs", map[string]any{"new_edits": false, "docs": docs}, &refused); err != nil {
			return err
		}
		if len(refused) > 0 {
			return fmt.Errorf("%s: refused: %v", s.name, refused[0])
		}
	}
	views := map[string]any{"views": map[string]any{"v": map[string]any{"map": "function (doc) { emit(doc.n, null); }"}}}
	if err := s.call(ctx, http.MethodPut, "/"+db+"/_design/d", views, nil); err != nil {
		return err
	}
	for size := 1; size <= largest; size *= 10 {
		content := make([]byte, size<<20)
		for i := range content {
			content[i] = byte(g.rng.Uint32())
		}
		answer, err := s.send(ctx, http.MethodPut, attachmentPath(db, fmt.Sprintf("large-%d", size), "large"), "application/octet-stream", bytes.NewReader(content))
		if err != nil {
			return err
		}
		if err := answer.Close(); err != nil {
			return err
		}
	}
	return nil
}
