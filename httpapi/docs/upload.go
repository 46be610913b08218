package docs

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"

	"divan/cluster"
	"divan/cluster/attachment"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// upload stores the content of new attachments of one document before the
// edit that names them is written, and remembers it in case the edit is
// refused.
type upload struct {
	c          *core.Call
	id         string // of the document
	replicated bool   // revpos is taken from the client
	done       []shard.EditAttachment
}

func newUpload(c *core.Call, id string, replicated bool) *upload {
	return &upload{c: c, id: id, replicated: replicated}
}

// discard gives back what was stored. It does nothing on a nil upload and the
// second time.
func (u *upload) discard() {
	if u == nil || len(u.done) == 0 {
		return
	}
	u.c.DB.Discard(u.c.Request.Context(), u.id, u.done)
	u.done = nil
}

// settle gives back what was stored when err says that the edit was refused and
// left no trace. After any other error it may have been written, or be written
// still: then the content stays until it is seen that nothing refers to it.
func (u *upload) settle(err error) {
	if cluster.Refusal(err) {
		u.discard()
	}
}

// attach turns the attachments of a document's body into those of an edit.
// Content that is marked as following comes from parts; nil parts means that
// nothing can follow. After an error nothing stays stored. A local document
// keeps none, and CouchDB takes it without a word.
func (u *upload) attach(specs []doc.AttachmentSpec, parts *docformat.RelatedReader) ([]shard.EditAttachment, error) {
	if len(specs) == 0 || doc.IsLocal(u.id) {
		return nil, nil
	}
	if err := u.check(specs, parts != nil); err != nil {
		return nil, err
	}
	atts := make([]shard.EditAttachment, 0, len(specs))
	for i := range specs {
		a, err := u.one(&specs[i], parts)
		if err != nil {
			u.discard()
			return nil, err
		}
		atts = append(atts, a)
	}
	return atts, nil
}

// check refuses what can be seen to be wrong without reading content, so that
// nothing is stored for it.
func (u *upload) check(specs []doc.AttachmentSpec, follow bool) error {
	for i := range specs {
		s := &specs[i]
		size := s.DataLen()
		switch {
		case s.Stub:
			continue
		case s.Follows && follow:
			size = docformat.FollowingLength(s)
		case s.Follows:
			return fault.New(fault.BadRequest, "Invalid attachment data for "+s.Name)
		}
		if err := checkAttachmentSize(u.c, s.Name, size); err != nil {
			return err
		}
	}
	return nil
}

// one stores the content of one attachment, if there is any in the request.
func (u *upload) one(s *doc.AttachmentSpec, parts *docformat.RelatedReader) (shard.EditAttachment, error) {
	if s.Stub {
		a := shard.EditAttachment{Stub: true, HasRevPos: s.HasRevPos}
		a.Name, a.RevPos = s.Name, s.RevPos
		return a, nil
	}
	in := content{name: s.Name, contentType: s.ContentType, identity: -1}
	if s.Follows {
		in.length = docformat.FollowingLength(s)
		in.gzip, in.identity, in.part = s.Encoding == "gzip", s.Length, true
		r, err := parts.Next(s)
		if err != nil {
			return shard.EditAttachment{}, err
		}
		in.r = r
	} else {
		in.length = s.DataLen()
		in.r = docformat.NewBase64Reader(s.Data)
	}
	a, err := u.store(in)
	if err != nil {
		return shard.EditAttachment{}, err
	}
	if s.Follows && a.Gzip == in.gzip && !digestFits(s.Digest, a.Digest) {
		return shard.EditAttachment{}, fault.Newf(fault.BadRequest, "Possible message corruption of attachment `%s`.", s.Name)
	}
	if u.replicated {
		a.RevPos, a.HasRevPos = s.RevPos, true
	}
	return a, nil
}

// digestFits compares "md5-<base64>" as sent along with the digest of what
// came. No digest, or one of another kind, fits everything.
func digestFits(text string, digest [16]byte) bool {
	encoded, ok := strings.CutPrefix(text, "md5-")
	if !ok {
		return true
	}
	return encoded == base64.StdEncoding.EncodeToString(digest[:])
}

// content is one attachment to be stored.
type content struct {
	name, contentType string
	gzip              bool  // r is said to be a gzip stream, to be stored as it comes
	length            int64 // of r, -1 unknown
	identity          int64 // with gzip: what the stream is said to inflate to, -1 not said
	part              bool  // r is part of a body that nothing has counted
	r                 io.Reader
}

// store streams one attachment into the database.
func (u *upload) store(in content) (shard.EditAttachment, error) {
	o := attachment.Options{
		Name: in.name, ContentType: in.contentType, Length: in.length, Identity: in.identity,
		MaxSize: u.c.Config.CouchDB.MaxAttachmentSize,
	}
	if in.gzip {
		o.Encoding = "gzip"
	}
	if in.part && in.length <= attachment.MaxInline {
		size := in.length
		if size < 0 {
			size = attachment.MaxInline
		}
		o.Stored = !u.c.Memory.TryTake(int(size))
	}
	a, err := u.c.DB.Upload(u.c.Request.Context(), u.id, o, in.r)
	if err != nil {
		return shard.EditAttachment{}, uploadError(u.c, err)
	}
	u.done = append(u.done, a)
	return a, nil
}

// uploadError tells a client that sent less than it announced from trouble of
// the server.
func uploadError(c *core.Call, err error) error {
	if fault.Is(err, fault.AttachmentTooLarge) {
		// The rest of the body stays unread.
		c.Response.Header().Set("Connection", "close")
		return err
	}
	if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
		return c.Response.TooLarge()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && fault.KindOf(err) == fault.Internal {
		return fault.Wrap(fault.BadRequest, "attachment shorter than expected", err)
	}
	return err
}

// checkAttachmentSize refuses an attachment whose announced size is above the
// limit before any of it is read.
func checkAttachmentSize(c *core.Call, name string, size int64) error {
	if limit := c.Config.CouchDB.MaxAttachmentSize; limit > 0 && size > limit {
		c.Response.Header().Set("Connection", "close")
		return fault.New(fault.AttachmentTooLarge, name)
	}
	return nil
}
