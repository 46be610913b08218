package doc

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"divan/storage/fault"
)

// DefaultContentType is the type of an attachment that was sent without one.
const DefaultContentType = "application/octet-stream"

// AttachmentSpec is one member of a client's _attachments. Exactly one of
// Stub, Follows and HasData holds; when a client sets several the first of
// them in this order counts (golden attachments/03).
type AttachmentSpec struct {
	Name        string
	ContentType string // DefaultContentType when the client names none
	Stub        bool   // keep the content of that name of the parent revision
	Follows     bool   // the content is a later part of the multipart body
	HasData     bool
	// Data is the base64 text of the content, checked to be well-formed. It
	// may hold white space. It aliases the parsed text unless that had escapes.
	Data      []byte
	RevPos    uint64
	HasRevPos bool
	Digest    string // as sent: "md5-…"; not checked
	// Length and EncodedLength are as sent, in bytes; -1 when absent.
	Length, EncodedLength int64
	Encoding              string // "gzip", or as sent; empty when absent
}

// takeAttachments reads _attachments.
func (e *Envelope) takeAttachments(value []byte) error {
	if !IsObject(value) {
		return errSpecial("_attachments")
	}
	e.Atts, e.HasAtts = nil, true
	return EachMember(value, func(name string, v []byte) error {
		a := AttachmentSpec{Name: name, ContentType: DefaultContentType, Length: -1, EncodedLength: -1}
		if err := a.read(v); err != nil {
			return err
		}
		e.Atts = append(e.Atts, a)
		return nil
	})
}

// ValidateAttachmentName refuses names that start with an underscore and names
// that are no UTF-8, with the texts of api.md 9.6.
func ValidateAttachmentName(name string) error {
	if strings.HasPrefix(name, "_") {
		return fault.New(fault.BadRequest, "Attachment name '"+name+"' starts with prohibited character '_'")
	}
	if !utf8.ValidString(name) {
		return fault.New(fault.BadRequest, "Attachment name is not UTF-8 encoded")
	}
	return nil
}

func (a *AttachmentSpec) invalid() error {
	return fault.New(fault.BadRequest, "Invalid attachment data for "+a.Name)
}

// read interprets the object of one attachment.
func (a *AttachmentSpec) read(value []byte) error {
	if err := ValidateAttachmentName(a.Name); err != nil {
		return err
	}
	if !IsObject(value) {
		return a.invalid()
	}
	var data []byte
	err := EachMember(value, func(name string, v []byte) error {
		if name == "data" {
			data = v
			return nil
		}
		return a.take(name, v)
	})
	if err != nil {
		return err
	}
	if a.Stub {
		a.Follows = false
	}
	if a.Stub || a.Follows {
		return nil
	}
	return a.takeData(data)
}

// take interprets one member of an attachment. Members it does not know are
// dropped, lengths of a wrong type count as absent: they are only hints.
func (a *AttachmentSpec) take(name string, value []byte) error {
	switch name {
	case "stub":
		a.Stub = value[0] == 't'
	case "follows":
		a.Follows = value[0] == 't'
	case "content_type":
		text, ok := Unquote(value)
		if !ok {
			return errSpecial("_attachments")
		}
		a.ContentType = text
	case "revpos":
		n, ok := integer(value)
		if !ok {
			return errSpecial("_attachments")
		}
		a.RevPos, a.HasRevPos = uint64(n), true
	case "digest":
		a.Digest, _ = Unquote(value)
	case "encoding":
		a.Encoding, _ = Unquote(value)
	case "length":
		a.Length = lengthHint(value)
	case "encoded_length":
		a.EncodedLength = lengthHint(value)
	}
	return nil
}

func lengthHint(value []byte) int64 {
	if n, ok := integer(value); ok {
		return n
	}
	return -1
}

// takeData takes the base64 text of the content.
func (a *AttachmentSpec) takeData(value []byte) error {
	data, ok := unquoted(value)
	if !ok || decodedLen(data) < 0 {
		return a.invalid()
	}
	a.Data, a.HasData = data, true
	return nil
}

// DataLen returns the number of bytes that Data stands for, without decoding
// it; 0 when there is no Data.
func (a *AttachmentSpec) DataLen() int64 { return int64(max(decodedLen(a.Data), 0)) }

// AppendData appends the bytes that Data stands for. The error is
// fault.BadRequest "Invalid attachment data for <name>"; a spec made by
// ParseEnvelope never gives one.
func (a *AttachmentSpec) AppendData(dst []byte) ([]byte, error) {
	text := a.Data
	for _, c := range text {
		if isSpace(c) {
			text = withoutSpace(text)
			break
		}
	}
	out, err := base64.StdEncoding.AppendDecode(dst, text)
	if err != nil {
		return dst, a.invalid()
	}
	return out, nil
}

func withoutSpace(text []byte) []byte {
	packed := make([]byte, 0, len(text))
	for _, c := range text {
		if !isSpace(c) {
			packed = append(packed, c)
		}
	}
	return packed
}

// decodedLen returns the number of bytes that a base64 text stands for, -1
// when it is malformed. The alphabet is the standard one, padding is
// mandatory, white space may stand anywhere (golden attachments/02).
func decodedLen(text []byte) int {
	digits, padding := 0, 0
	for _, c := range text {
		switch {
		case isSpace(c):
		case c == '=':
			padding++
		case padding > 0 || !isBase64(c):
			return -1
		default:
			digits++
		}
	}
	if (digits+padding)%4 != 0 || padding > 2 {
		return -1
	}
	return digits * 3 / 4
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || isDigit(c) || c == '+' || c == '/'
}
