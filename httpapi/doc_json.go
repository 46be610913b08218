package httpapi

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
)

// Order of a document's members on output (api.md 9.6): _id, _rev, the body as
// stored, _deleted, _revisions, _revs_info, _conflicts, _deleted_conflicts,
// _local_seq, _attachments.

// docStyle says how the attachments of a document are answered.
type docStyle struct {
	attachments bool      // with their content; else as stubs
	follows     bool      // the content is in the MIME parts that follow the JSON
	encoding    bool      // with encoding and encoded_length of what is stored as gzip
	since       []doc.Rev // attachments no newer than one of these ancestors are stubs all the same
}

// contentReader gives out stored bytes of attachments; a *cluster.DB.
type contentReader interface {
	ReadAttachment(ctx context.Context, id string, a doc.Attachment, off, n int64) (io.ReadCloser, error)
}

// needsPath reports whether the document must come with its Revisions.
func (s docStyle) needsPath() bool { return s.attachments && len(s.since) > 0 }

// knownPos returns the position of the newest revision in the document's
// history that the client says it has, 0 when there is none.
func (s docStyle) knownPos(path doc.Path) uint64 {
	if !s.needsPath() {
		return 0
	}
	newest := uint64(0)
	for _, have := range s.since { // a history may be long too: never one through the other
		back := path.Start - have.Pos
		if have.Pos <= path.Start && back < uint64(len(path.IDs)) && path.IDs[back] == have.ID {
			newest = max(newest, have.Pos)
		}
	}
	return newest
}

// fresh reports whether an attachment came in after what the client has.
func fresh(a *doc.Attachment, known uint64) bool { return known == 0 || a.RevPos > known }

// withContent returns the attachments that are answered with their content.
func (s docStyle) withContent(d *shard.Doc) []doc.Attachment {
	if !s.attachments || len(d.Atts) == 0 {
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

// inline reports whether the document's JSON holds content of attachments, so
// that it cannot be made in memory but has to be streamed.
func (s docStyle) inline(d *shard.Doc) bool {
	return s.attachments && !s.follows && len(s.withContent(d)) > 0
}

// showRevisions says whether _revisions is part of the answer; the history may
// also have been read for the sake of atts_since.
type showRevisions bool

// appendMembers appends the document up to _local_seq, without the closing
// brace.
func appendMembers(dst []byte, d *shard.Doc, revs showRevisions) []byte {
	dst = doc.AppendHead(dst, doc.Splice{ID: d.ID, Rev: d.Rev, Deleted: d.Deleted, Body: d.Body})
	if revs && len(d.Revisions.IDs) > 0 {
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
	return appendRevs(dst, revs)
}

// appendRevs appends revisions as a JSON array.
func appendRevs(dst []byte, revs []doc.Rev) []byte {
	dst = append(dst, '[')
	for i, r := range revs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.AppendJSON(dst)
	}
	return append(dst, ']')
}

// appendDoc appends a document that holds no content of attachments: they are
// stubs, or follow.
func appendDoc(dst []byte, d *shard.Doc, revs showRevisions, style docStyle) []byte {
	dst = appendMembers(dst, d, revs)
	if len(d.Atts) == 0 {
		return append(dst, '}')
	}
	known := style.knownPos(d.Revisions)
	dst = append(dst, `,"_attachments":{`...)
	for i := range d.Atts {
		a := &d.Atts[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.AppendMember(dst)
		dst = append(dst, `,"length":`...)
		dst = strconv.AppendInt(dst, a.Length, 10)
		if style.attachments && fresh(a, known) {
			dst = append(dst, `,"follows":true`...)
		} else {
			dst = append(dst, `,"stub":true`...)
		}
		dst = appendEncoding(dst, a, style.encoding)
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

// docStream writes documents into a streamed answer, with the content of their
// attachments in base64 where that is asked for. It holds one chunk of an
// attachment at a time.
type docStream struct {
	out   *streamWriter
	db    contentReader
	revs  showRevisions
	style docStyle
	chunk []byte
}

// write appends one document.
func (s *docStream) write(ctx context.Context, d *shard.Doc) error {
	if !s.style.inline(d) {
		style := s.style
		style.attachments = style.attachments && style.follows
		s.out.buf = appendDoc(s.out.buf, d, s.revs, style)
		return s.out.spill()
	}
	known := s.style.knownPos(d.Revisions)
	s.out.buf = append(appendMembers(s.out.buf, d, s.revs), `,"_attachments":{`...)
	for i := range d.Atts {
		a := &d.Atts[i]
		if i > 0 {
			s.out.buf = append(s.out.buf, ',')
		}
		s.out.buf = a.AppendMember(s.out.buf)
		if fresh(a, known) {
			s.out.buf = append(s.out.buf, `,"data":"`...)
			if err := s.content(ctx, d.ID, a); err != nil {
				return err
			}
			s.out.buf = append(s.out.buf, '"')
		} else {
			s.out.buf = append(s.out.buf, `,"length":`...)
			s.out.buf = strconv.AppendInt(s.out.buf, a.Length, 10)
			s.out.buf = append(s.out.buf, `,"stub":true`...)
		}
		s.out.buf = appendEncoding(s.out.buf, a, s.style.encoding)
	}
	s.out.buf = append(s.out.buf, "}}"...)
	return s.out.spill()
}

// base64Chunk is how much content is encoded at a time: a multiple of three,
// so that no padding falls between chunks.
const base64Chunk = 24 << 10

// content appends the identity bytes of an attachment in base64.
func (s *docStream) content(ctx context.Context, id string, a *doc.Attachment) (err error) {
	r, err := openIdentity(ctx, s.db, id, a)
	if err != nil {
		return err
	}
	defer closeInto(r, &err)
	if s.chunk == nil {
		s.chunk = make([]byte, base64Chunk)
	}
	for {
		n, err := fill(r, s.chunk)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read attachment %q of %q: %w", a.Name, id, err)
		}
		s.out.buf = base64.StdEncoding.AppendEncode(s.out.buf, s.chunk[:n])
		if spillErr := s.out.spill(); spillErr != nil {
			return spillErr
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

// openIdentity reads an attachment as the client sent it, inflating what is
// stored as gzip. What does not even begin like gzip is read as it is stored.
func openIdentity(ctx context.Context, db contentReader, id string, a *doc.Attachment) (io.ReadCloser, error) {
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
