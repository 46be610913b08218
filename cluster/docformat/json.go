package docformat

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Order of a document's members on output (api.md 9.6): _id, _rev, the body as
// stored, _deleted, _revisions, _revs_info, _conflicts, _deleted_conflicts,
// _local_seq, _attachments.

// Style says how the attachments of a document are answered.
type Style struct {
	Revisions    bool      // with _revisions; the history may also have been read for the sake of since
	Attachments  bool      // with their content; else as stubs
	Follows      bool      // the content is in the MIME parts that follow the JSON
	EncodingInfo bool      // with encoding and encoded_length of what is stored as gzip
	Since        []doc.Rev // attachments no newer than one of these ancestors are stubs all the same
}

// ContentReader gives out stored bytes of attachments; a *cluster.DB.
type ContentReader interface {
	ReadAttachment(ctx context.Context, id string, a doc.Attachment, off, n int64) (io.ReadCloser, error)
}

// NeedsPath reports whether the document must come with its Revisions.
func (s Style) NeedsPath() bool { return s.Attachments && len(s.Since) > 0 }

// knownPos returns the position of the newest revision in the document's
// history that the client says it has, 0 when there is none.
func (s Style) knownPos(path doc.Path) uint64 {
	if !s.NeedsPath() {
		return 0
	}
	newest := uint64(0)
	for _, have := range s.Since { // a history may be long too: never one through the other
		back := path.Start - have.Pos
		if have.Pos <= path.Start && back < uint64(len(path.IDs)) && path.IDs[back] == have.ID {
			newest = max(newest, have.Pos)
		}
	}
	return newest
}

// fresh reports whether an attachment came in after what the client has.
func fresh(a *doc.Attachment, known uint64) bool { return known == 0 || a.RevPos > known }

// WithContent returns the attachments that are answered with their content.
func (s Style) WithContent(d *shard.Doc) []doc.Attachment {
	if !s.Attachments || len(d.Atts) == 0 {
		return nil
	}
	known := s.knownPos(d.Revisions)
	if known == 0 {
		return d.Atts
	}
	var atts []doc.Attachment
	for i := range d.Atts {
		if fresh(&d.Atts[i], known) {
			atts = append(atts, d.Atts[i])
		}
	}
	return atts
}

// Inlines reports whether the document's JSON holds content of attachments, so
// that it cannot be made in memory but has to be streamed.
func (s Style) Inlines(d *shard.Doc) bool {
	return s.Attachments && !s.Follows && len(s.WithContent(d)) > 0
}

// appendMembers appends the document up to _local_seq, without the closing
// brace.
func (s Style) appendMembers(dst []byte, d *shard.Doc) []byte {
	dst = doc.AppendHead(dst, doc.Splice{ID: d.ID, Rev: d.Rev, Deleted: d.Deleted, Body: d.Body})
	if s.Revisions && len(d.Revisions.IDs) > 0 {
		dst = append(dst, `,"_revisions":`...)
		dst = d.Revisions.AppendJSON(dst)
	}
	if len(d.RevsInfo) > 0 {
		dst = append(dst, `,"_revs_info":[`...)
		for i, info := range d.RevsInfo {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"rev":`...)
			dst = info.Rev.AppendJSON(dst)
			dst = append(dst, `,"status":"`...)
			dst = append(dst, info.Status...)
			dst = append(dst, `"}`...)
		}
		dst = append(dst, ']')
	}
	dst = appendRevMember(dst, `,"_conflicts":`, d.Conflicts)
	dst = appendRevMember(dst, `,"_deleted_conflicts":`, d.DeletedConflicts)
	if d.LocalSeq > 0 {
		dst = append(dst, `,"_local_seq":`...)
		dst = strconv.AppendUint(dst, d.LocalSeq, 10)
	}
	return dst
}

// appendRevMember appends a member that lists revisions, nothing when there
// are none.
func appendRevMember(dst []byte, name string, revs []doc.Rev) []byte {
	if len(revs) == 0 {
		return dst
	}
	dst = append(dst, name...)
	return AppendRevs(dst, revs)
}

// ParseRevs reads a JSON array of revisions.
func ParseRevs(text []byte) ([]doc.Rev, error) {
	canonical, err := doc.Canonical(nil, text)
	if err != nil {
		return nil, err
	}
	if canonical[0] != '[' {
		return nil, fault.New(fault.BadRequest, "Invalid list of revisions")
	}
	var list []doc.Rev
	err = doc.EachElement(canonical, func(value []byte) error {
		s, ok := doc.Unquote(value)
		if !ok {
			return fault.New(fault.BadRequest, "Invalid rev format")
		}
		rev, err := doc.ParseRev(s)
		list = append(list, rev)
		return err
	})
	return list, err
}

// AppendRevs appends revisions as a JSON array.
func AppendRevs(dst []byte, revs []doc.Rev) []byte {
	dst = append(dst, '[')
	for i, r := range revs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.AppendJSON(dst)
	}
	return append(dst, ']')
}

// Append appends a document that holds no content of attachments: they follow
// where the style says so, and else are stubs.
func (s Style) Append(dst []byte, d *shard.Doc) []byte {
	dst = s.appendMembers(dst, d)
	if len(d.Atts) == 0 {
		return append(dst, '}')
	}
	known := s.knownPos(d.Revisions)
	dst = append(dst, `,"_attachments":{`...)
	for i := range d.Atts {
		a := &d.Atts[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.AppendMember(dst)
		dst = append(dst, `,"length":`...)
		dst = strconv.AppendInt(dst, a.Length, 10)
		if s.Attachments && s.Follows && fresh(a, known) {
			dst = append(dst, `,"follows":true`...)
		} else {
			dst = append(dst, `,"stub":true`...)
		}
		dst = appendEncoding(dst, a, s.EncodingInfo)
	}
	return append(dst, "}}"...)
}

// appendEncoding appends how the attachment is stored, if that is asked for,
// and the closing brace.
func appendEncoding(dst []byte, a *doc.Attachment, show bool) []byte {
	if show && a.Gzip {
		dst = append(dst, `,"encoding":"gzip","encoded_length":`...)
		dst = strconv.AppendInt(dst, a.StoredLength, 10)
	}
	return append(dst, '}')
}

// Writer writes documents with the content of their attachments in base64,
// where that is asked for. It holds one chunk of an attachment at a time.
type Writer struct {
	w     io.Writer
	db    ContentReader
	chunk []byte // of content
	text  []byte // of JSON
}

// NewWriter returns a writer to w of documents whose attachments are read from
// db.
func NewWriter(w io.Writer, db ContentReader) *Writer { return &Writer{w: w, db: db} }

// WriteDoc writes a document.
func (w *Writer) WriteDoc(ctx context.Context, d *shard.Doc, style Style) error {
	if !style.Inlines(d) {
		return w.flush(style.Append(w.text[:0], d))
	}
	known := style.knownPos(d.Revisions)
	text := append(style.appendMembers(w.text[:0], d), `,"_attachments":{`...)
	for i := range d.Atts {
		a := &d.Atts[i]
		if i > 0 {
			text = append(text, ',')
		}
		text = a.AppendMember(text)
		if fresh(a, known) {
			if err := w.flush(append(text, `,"data":"`...)); err != nil {
				return err
			}
			if err := w.content(ctx, d.ID, a); err != nil {
				return err
			}
			text = append(w.text[:0], '"')
		} else {
			text = append(text, `,"length":`...)
			text = strconv.AppendInt(text, a.Length, 10)
			text = append(text, `,"stub":true`...)
		}
		text = appendEncoding(text, a, style.EncodingInfo)
	}
	return w.flush(append(text, "}}"...))
}

// flush writes a text and keeps its memory for the next one.
func (w *Writer) flush(text []byte) error {
	w.text = text[:0]
	_, err := w.w.Write(text)
	return err
}

// base64Chunk is how much content is encoded at a time: a multiple of three,
// so that no padding falls between chunks.
const base64Chunk = 24 << 10

// content writes the identity bytes of an attachment in base64.
func (w *Writer) content(ctx context.Context, id string, a *doc.Attachment) (err error) {
	r, err := OpenIdentity(ctx, w.db, id, a)
	if err != nil {
		return err
	}
	defer closeInto(r, &err)
	if w.chunk == nil {
		w.chunk = make([]byte, base64Chunk)
	}
	for {
		n, err := fill(r, w.chunk)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read attachment %q of %q: %w", a.Name, id, err)
		}
		if writeErr := w.flush(base64.StdEncoding.AppendEncode(w.text[:0], w.chunk[:n])); writeErr != nil {
			return writeErr
		}
		if err != nil {
			return nil
		}
	}
}

// fill reads until p is full. io.EOF means the end of r, also after some
// bytes; unlike with io.ReadFull it cannot be taken for r's own complaint that
// the end came too early.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	return n, err
}

// OpenIdentity reads an attachment as the client sent it, inflating what is
// stored as gzip. What does not even begin like gzip is read as it is stored.
func OpenIdentity(ctx context.Context, db ContentReader, id string, a *doc.Attachment) (io.ReadCloser, error) {
	r, err := db.ReadAttachment(ctx, id, *a, 0, a.StoredLength)
	if err != nil || !a.Gzip {
		return r, err
	}
	z, err := gzip.NewReader(r)
	switch {
	case err == nil:
		return &inflated{Reader: z, stored: r}, nil
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("close attachment %q of %q: %w", a.Name, id, err)
		}
		return db.ReadAttachment(ctx, id, *a, 0, a.StoredLength)
	default:
		return nil, errors.Join(fmt.Errorf("inflate attachment %q of %q: %w", a.Name, id, err), r.Close())
	}
}

// inflated is a gzip stream that closes what it reads from.
type inflated struct {
	*gzip.Reader
	stored io.Closer
}

// Close implements io.Closer.
func (i *inflated) Close() error { return errors.Join(i.Reader.Close(), i.stored.Close()) }

// CopyContent writes content of n bytes to w, and closes it; a negative n is
// not known.
func CopyContent(w io.Writer, body io.ReadCloser, n int64) (err error) {
	defer closeInto(body, &err)
	written, err := io.Copy(w, body)
	if err == nil && n >= 0 && written != n {
		return io.ErrUnexpectedEOF
	}
	return err
}

// closeInto closes what was read from. That it cannot be closed is an error of
// the reading too, where there is none yet.
func closeInto(r io.Closer, err *error) {
	if closeErr := r.Close(); *err == nil {
		*err = closeErr
	}
}
