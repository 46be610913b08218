package doc

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"

	"divan/storage/fault"
)

// Attachment is one attachment as stored with a revision. The content itself
// is kept elsewhere, under Key, and may be shared by many revisions.
type Attachment struct {
	Name        string
	ContentType string
	RevPos      uint64   // position of the revision that brought the content in
	Digest      [16]byte // MD5 of the stored bytes
	// Length counts the bytes a client uploaded before compression;
	// StoredLength those that are kept. They differ only when Gzip is set.
	Length, StoredLength int64
	Gzip                 bool     // stored bytes are a gzip stream
	Key                  [16]byte // names the content inside the document's attachments
}

// AppendMember appends the attachment's member of _attachments (api.md 10.3):
// its name, and the object up to the digest. How the content is answered, as a
// length or in full, and the closing brace are left to the caller.
func (a *Attachment) AppendMember(dst []byte) []byte {
	dst = AppendString(dst, a.Name)
	dst = append(dst, `:{"content_type":`...)
	dst = AppendString(dst, a.ContentType)
	dst = append(dst, `,"revpos":`...)
	dst = strconv.AppendUint(dst, a.RevPos, 10)
	dst = append(dst, `,"digest":"md5-`...)
	dst = base64.StdEncoding.AppendEncode(dst, a.Digest[:])
	return append(dst, '"')
}

// Revision is the content of one revision. Body is the canonical JSON text of
// an object without underscore members, "{}" when it is empty.
type Revision struct {
	Deleted bool
	Body    []byte
	Atts    []Attachment
}

// The first byte of an encoded revision: the version in the upper four bits,
// flags in the lower ones.
const (
	revisionVersion = 0x10
	revisionDeleted = 0x01
	versionMask     = 0xf0
)

// attGzip is a flag of an encoded attachment.
const attGzip = 0x01

// AppendBinary appends the stored form:
//
//	byte    version and flags
//	uvarint length of the body, then the body
//	uvarint number of attachments, then each:
//	        byte flags; name and content type, each with uvarint length;
//	        uvarint revpos, length, stored length; 16 bytes digest; 16 bytes key
func (v Revision) AppendBinary(dst []byte) []byte {
	head := byte(revisionVersion)
	if v.Deleted {
		head |= revisionDeleted
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, uint64(len(v.Body)))
	dst = append(dst, v.Body...)
	dst = binary.AppendUvarint(dst, uint64(len(v.Atts)))
	for i := range v.Atts {
		dst = v.Atts[i].appendBinary(dst)
	}
	return dst
}

// BinaryLen returns how many bytes AppendBinary appends.
func (v Revision) BinaryLen() int {
	n := 1 + textLen(len(v.Body)) + uvarintLen(uint64(len(v.Atts)))
	for i := range v.Atts {
		a := &v.Atts[i]
		n += 1 + textLen(len(a.Name)) + textLen(len(a.ContentType)) + uvarintLen(a.RevPos) +
			uvarintLen(uint64(a.Length)) + uvarintLen(uint64(a.StoredLength)) + len(a.Digest) + len(a.Key)
	}
	return n
}

// textLen returns how many bytes a text of n bytes takes behind its length.
func textLen(n int) int { return uvarintLen(uint64(n)) + n }

// uvarintLen returns how many bytes binary.AppendUvarint appends.
func uvarintLen(x uint64) int {
	const group = 7 // bits in a byte
	return (bits.Len64(x|1) + group - 1) / group
}

func (a *Attachment) appendBinary(dst []byte) []byte {
	var flags byte
	if a.Gzip {
		flags |= attGzip
	}
	dst = append(dst, flags)
	dst = appendText(dst, a.Name)
	dst = appendText(dst, a.ContentType)
	dst = binary.AppendUvarint(dst, a.RevPos)
	dst = binary.AppendUvarint(dst, uint64(a.Length))
	dst = binary.AppendUvarint(dst, uint64(a.StoredLength))
	dst = append(dst, a.Digest[:]...)
	return append(dst, a.Key[:]...)
}

// DecodeRevision reads what AppendBinary wrote. Body aliases b; everything
// else is copied. The error is fault.Corruption.
func DecodeRevision(b []byte) (Revision, error) {
	var v Revision
	if len(b) == 0 || b[0]&versionMask != revisionVersion {
		return v, damaged("revision")
	}
	v.Deleted = b[0]&revisionDeleted != 0
	r := reader{b: b[1:]}
	v.Body = r.bytes()
	n := r.uvarint()
	if n == 0 {
		if r.bad || len(r.b) != 0 {
			return Revision{}, damaged("revision")
		}
		return v, nil
	}
	// An encoded attachment is no shorter than this many bytes, so that a
	// damaged count cannot ask for more memory than the input's size.
	const least = 1 + 1 + 1 + 1 + 1 + 1 + 16 + 16
	if r.bad || n > uint64(len(r.b)/least) {
		return Revision{}, damaged("revision")
	}
	v.Atts = make([]Attachment, n)
	text := string(r.b)
	for i := range v.Atts {
		r.attachment(&v.Atts[i], text)
	}
	if r.bad || len(r.b) != 0 {
		return Revision{}, damaged("revision")
	}
	return v, nil
}

// attachment reads one attachment; text holds the same bytes that r had when
// it was made, so that names are slices of one string.
func (r *reader) attachment(a *Attachment, text string) {
	a.Gzip = r.byte()&attGzip != 0
	a.Name = r.text(text)
	a.ContentType = r.text(text)
	a.RevPos = r.uvarint()
	a.Length = int64(r.uvarint())
	a.StoredLength = int64(r.uvarint())
	copy(a.Digest[:], r.take(16))
	copy(a.Key[:], r.take(16))
}

// damaged is the error for stored bytes that do not decode.
func damaged(what string) error {
	return fault.New(fault.Corruption, "stored "+what+" does not decode")
}
