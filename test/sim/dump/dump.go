// Package dump reads what the copies in a data directory hold, for the checks
// of a history. No node may be using the directory.
package dump

import (
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage"
	"divan/storage/doc"
	"divan/test/sim/history"
)

// Options say what to read.
type Options struct {
	FS   vfs.FS // nil: the real file system
	Dir  string // the data directory
	Node string // whose it is, for the result
	// Wanted tells which copies to read, by database, suffix and range.
	Wanted func(db, suffix, span string) bool
}

// Copies returns the wanted copies and every broken invariant of a store as
// text.
func Copies(ctx context.Context, o Options) (copies []history.Copy, problems []string, err error) {
	engine, err := storage.NewEngine(storage.Options{Dir: o.Dir, FS: o.FS})
	if err != nil {
		return nil, nil, err
	}
	local := shard.New(shard.Options{Engine: engine})
	defer func() { err = errors.Join(err, local.Close(), engine.Close()) }()
	names, err := engine.Catalog().Names()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		_, rest, _ := strings.Cut(name, "/")
		span, rest, _ := strings.Cut(rest, "/")
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 || !o.Wanted(rest[:dot], rest[dot+1:], span) {
			continue
		}
		r := reader{engine: engine, local: local, name: name, out: history.Copy{
			DB: rest[:dot], Range: span, Node: o.Node, Docs: map[string][]history.Leaf{}, Numbers: map[int]string{},
		}}
		if err := r.read(ctx); err != nil {
			return nil, nil, fmt.Errorf("read %s of %s: %w", name, o.Node, err)
		}
		copies, problems = append(copies, r.out), append(problems, r.problems...)
	}
	return copies, problems, nil
}

// reader reads one copy.
type reader struct {
	engine   *storage.Engine
	local    *shard.Local
	name     string
	out      history.Copy
	problems []string
}

func (r *reader) problem(text string) {
	r.problems = append(r.problems, r.out.Node+": "+r.name+": "+text)
}

func (r *reader) read(ctx context.Context) error {
	store, err := r.engine.Acquire(r.name)
	if err != nil {
		return err
	}
	err = store.Check(ctx, r.problem)
	r.engine.Release(store)
	if err != nil {
		return err
	}
	feed, err := r.local.Changes(ctx, shard.ChangesRequest{Copy: r.name, AllLeaves: true})
	if err != nil {
		return err
	}
	defer feed.Close()
	var batch shard.ChangeBatch
	for more := true; more; {
		if more, err = feed.Next(&batch); err != nil {
			return err
		}
		for _, c := range batch.Rows {
			if err := r.document(ctx, strings.Clone(c.ID)); err != nil {
				return fmt.Errorf("document %s: %w", c.ID, err)
			}
		}
	}
	return nil
}

func (r *reader) document(ctx context.Context, id string) error {
	leaves, err := r.local.OpenRevs(ctx, shard.OpenRevsRequest{Copy: r.name, ID: id, All: true, WithPath: true})
	if err != nil {
		return err
	}
	seen := map[doc.Rev]bool{}
	var inner []doc.Rev
	for _, l := range leaves {
		if l.Doc == nil {
			r.problem(fmt.Sprintf("leaf %s of %s has no body", l.Rev, id))
			continue
		}
		leaf, err := r.leaf(ctx, l.Doc)
		if err != nil {
			return err
		}
		r.out.Docs[id] = append(r.out.Docs[id], leaf)
		for i, name := range l.Doc.Revisions.IDs {
			rev := doc.Rev{Pos: l.Doc.Revisions.Start - uint64(i), ID: name}
			if i > 0 && !seen[rev] {
				seen[rev] = true
				inner = append(inner, rev)
			}
		}
	}
	if len(inner) == 0 {
		return nil
	}
	revs, err := r.local.OpenRevs(ctx, shard.OpenRevsRequest{Copy: r.name, ID: id, Revs: inner})
	if err != nil {
		return err
	}
	for _, v := range revs {
		if v.Doc != nil {
			r.note(v.Doc)
		}
	}
	return nil
}

// note remembers the number in the body of a revision and returns it.
func (r *reader) note(d *shard.Doc) int {
	n := Number(d.Body)
	if n > 0 {
		r.out.Numbers[n] = d.ID
	}
	return n
}

// Number returns the number in the body of a document, 0 when there is none.
func Number(body []byte) int {
	var v struct {
		Number int `json:"n"`
	}
	if json.Unmarshal(body, &v) != nil {
		return 0
	}
	return v.Number
}

func (r *reader) leaf(ctx context.Context, d *shard.Doc) (history.Leaf, error) {
	out := history.Leaf{Rev: d.Rev.String(), Deleted: d.Deleted, Number: r.note(d)}
	for i, id := range d.Revisions.IDs[1:] {
		out.Ancestors = append(out.Ancestors, doc.Rev{Pos: d.Revisions.Start - 1 - uint64(i), ID: id}.String())
	}
	for _, a := range d.Atts {
		sum, err := r.sum(ctx, d.ID, a)
		if err != nil {
			return out, fmt.Errorf("attachment %s: %w", a.Name, err)
		}
		if out.Attachments == nil {
			out.Attachments = map[string]string{}
		}
		out.Attachments[a.Name] = sum
	}
	return out, nil
}

// sum reads the content of an attachment as a client would get it.
func (r *reader) sum(ctx context.Context, id string, a doc.Attachment) (string, error) {
	in, err := r.local.Attachments.Read(ctx, shard.AttachmentRange{Copy: r.name, ID: id, Key: a.Key, Length: -1})
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // only read
	var content io.Reader = in
	if a.Gzip {
		if content, err = gzip.NewReader(in); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(content)
	return Sum(text), err
}

// Sum stands for the content of an attachment.
func Sum(content []byte) string {
	s := md5.Sum(content)
	return hex.EncodeToString(s[:])
}
