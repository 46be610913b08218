package main

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rev is a revision id that follows from a document and a number.
func rev(id string, n int) string {
	sum := md5.Sum(fmt.Appendf(nil, "%s %d", id, n))
	return hex.EncodeToString(sum[:])
}

// leaf is a leaf of a document at generation 2, as replication writes it.
func leaf(id string, branch int) body {
	return body{
		ID: id, Rev: "2-" + rev(id, branch), Revisions: &revisions{Start: 2, IDs: []string{rev(id, branch), rev(id, 0)}},
		N: branch, Pad: pad(len(id) + branch),
	}
}

// fill writes the documents of a number to another, of all sorts: with
// conflicts, deleted ones, with attachments of up to so many bytes, with ids that
// have to be escaped. It returns how many revisions are to be copied.
func fill(t *testing.T, c *client, rng *rand.Rand, span [2]int, largest int) (leaves int) {
	t.Helper()
	var batch []body
	flush := func() {
		t.Helper()
		var refused []result
		status, err := c.call("POST", "/source/_bulk_docs", map[string]any{"new_edits": false, "docs": batch}, &refused)
		if err != nil || status != 201 || len(refused) > 0 {
			t.Fatalf("fill: %d %v %v", status, err, refused)
		}
		leaves += len(batch)
		batch = nil
	}
	for i := span[0]; i < span[1]; i++ {
		id := fmt.Sprintf("doc-%05d", i)
		if i%10 == 3 {
			id = fmt.Sprintf("ünï/%d ☃+%%2F", i)
		}
		d := leaf(id, 1)
		switch {
		case i%11 == 5:
			d.Deleted = true
		case i%100 == 50:
			d.attach(rng, 1+largest/2+rng.IntN(largest/2))
		case i%5 == 1:
			d.attach(rng, 1+rng.IntN(3000))
		}
		batch = append(batch, d)
		if i%7 == 2 {
			other := leaf(id, 2)
			other.Deleted = i%14 == 2
			batch = append(batch, other)
		}
		if len(batch) >= 200 {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	return leaves
}

// attach adds an attachment that is stored as it is, and one that is stored
// compressed.
func (b *body) attach(rng *rand.Rand, size int) {
	text := content{rng.Uint64(), size, true}
	image := content{rng.Uint64(), size, false}
	b.Attachments = map[string]inline{}
	for name, c := range map[string]content{"notes.txt": text, "a/b ☃.png": image} {
		b.Attachments[name] = inline{ContentType: c.mediaType(), Data: base64.StdEncoding.EncodeToString(c.bytes())}
	}
}

// leavesOf returns all leaves of a database, with the history, the body and the
// digests of the attachments of each.
func leavesOf(c *client, db string) (map[string]string, error) {
	var changes struct {
		Results []struct {
			ID      string              `json:"id"`
			Changes []map[string]string `json:"changes"`
		} `json:"results"`
	}
	if status, err := c.call("GET", "/"+db+"/_changes?style=all_docs", nil, &changes); err != nil || status != 200 {
		return nil, fmt.Errorf("changes of %s: %d %w", db, status, err)
	}
	out := map[string]string{}
	var wanted []map[string]string
	for _, row := range changes.Results {
		for _, change := range row.Changes {
			wanted = append(wanted, map[string]string{"id": row.ID, "rev": change["rev"]})
			out[row.ID+" "+change["rev"]] = ""
		}
	}
	for some := range slices.Chunk(wanted, 500) {
		var answer struct {
			Results []struct {
				ID   string `json:"id"`
				Docs []struct {
					OK map[string]any `json:"ok"`
				} `json:"docs"`
			} `json:"results"`
		}
		if status, err := c.call("POST", "/"+db+"/_bulk_get?revs=true", map[string]any{"docs": some}, &answer); err != nil || status != 200 {
			return nil, fmt.Errorf("documents of %s: %d %w", db, status, err)
		}
		for _, r := range answer.Results {
			text, err := json.Marshal(r.Docs)
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(r.ID, " ", r.Docs[0].OK["_rev"])] = string(text)
		}
	}
	return out, nil
}

// differences tells how two databases differ; empty when they hold the same.
func differences(a *client, dbA string, b *client, dbB string) (string, error) {
	left, err := leavesOf(a, dbA)
	if err != nil {
		return "", err
	}
	right, err := leavesOf(b, dbB)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d and %d leaves\n", len(left), len(right))
	same := true
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if text, ok := right[key]; !ok || text != left[key] || text == "" {
			same = false
			fmt.Fprintf(&out, "%s\n\t%.300s\n\t%.300s\n", key, left[key], text)
		}
	}
	if same && len(left) == len(right) {
		return "", nil
	}
	return fmt.Sprintf("%.3000s", out.String()), nil
}

// wantSame fails unless two databases hold the same.
func wantSame(t *testing.T, a *client, dbA string, b *client, dbB string) {
	t.Helper()
	switch diff, err := differences(a, dbA, b, dbB); {
	case err != nil:
		t.Fatal(err)
	case diff != "":
		t.Errorf("%s and %s differ: %s", dbA, dbB, diff)
	}
}
