package docformat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// contents gives out attachments by name.
type contents map[string]string

func (m contents) ReadAttachment(_ context.Context, _ string, a doc.Attachment, off, n int64) (io.ReadCloser, error) {
	text, ok := m[a.Name]
	if !ok {
		return nil, errors.New("no such content")
	}
	return io.NopCloser(strings.NewReader(text[off : off+n])), nil
}

// goldenDoc is the document of golden attachments/05.
func goldenDoc(t *testing.T) (*shard.Doc, contents) {
	t.Helper()
	rev, err := doc.ParseRev("2-22222222222222222222222222222222")
	if err != nil {
		t.Fatal(err)
	}
	return &shard.Doc{
		ID: "d", Rev: rev, Body: []byte(`{"v":1}`),
		Atts: []doc.Attachment{
			{
				Name: "one.bin", ContentType: "application/octet-stream", RevPos: 1, Length: 5, StoredLength: 5,
				Digest: [16]byte{0x8b, 0x04, 0xd5, 0xe3, 0x77, 0x5d, 0x29, 0x8e, 0x78, 0x45, 0x5e, 0xfc, 0x5c, 0xa4, 0x04, 0xd5},
			},
			{
				Name: "two.png", ContentType: "image/png", RevPos: 2, Length: 8, StoredLength: 8,
				Digest: [16]byte{0xe9, 0xdd, 0x27, 0x97, 0x01, 0x8c, 0xad, 0x79, 0x18, 0x6e, 0x03, 0xe8, 0xc5, 0xae, 0xc8, 0xdc},
			},
		},
	}, contents{"one.bin": "first", "two.png": "\x89PNG\r\n\x1a\n"}
}

// TestRelatedSize checks the length that CouchDB announces for the document of
// golden attachments/05, and that it is what is written.
func TestRelatedSize(t *testing.T) {
	d, store := goldenDoc(t)
	style := Style{Attachments: true, Follows: true, EncodingInfo: true}
	m := Related{Boundary: Boundary(), ID: d.ID, Atts: d.Atts, JSON: style.Append(nil, d)}
	const golden = 735
	if m.Size() != golden {
		t.Errorf("size %d, want %d; JSON %s", m.Size(), golden, m.JSON)
	}
	var out bytes.Buffer
	if err := m.Write(t.Context(), &out, store); err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) != m.Size() {
		t.Errorf("wrote %d bytes, announced %d", out.Len(), m.Size())
	}
	r, text, err := NewRelatedReader(&out, m.ContentType(), UpTo(1<<20))
	if err != nil || !bytes.Equal(text, m.JSON) {
		t.Fatalf("read back %q, %v", text, err)
	}
	for _, a := range d.Atts {
		part, err := r.Next(&doc.AttachmentSpec{Name: a.Name})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(part); err != nil || string(got) != store[a.Name] {
			t.Errorf("%s: %q, %v", a.Name, got, err)
		}
	}
	if _, err := r.Next(&doc.AttachmentSpec{Name: "none"}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("a part too many: %v", err)
	}
}

// TestPartHeadersHoldOneLineEach checks that no name or type of an attachment
// can add headers or end a part.
func TestPartHeadersHoldOneLineEach(t *testing.T) {
	a := doc.Attachment{Name: "a\"b\\c\r\nX-Evil: 1\r\n\r\n--b", ContentType: "text/plain\r\nX-Evil: 2", StoredLength: 3, Gzip: true}
	body := "--b" + string(appendPartHead(nil, &a)) + "abc\r\n--b--"
	part, err := multipart.NewReader(strings.NewReader(body), "b").NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	if len(part.Header) != 4 || part.Header.Get("X-Evil") != "" {
		t.Errorf("headers %v", part.Header)
	}
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || params["filename"] != "a\"b\\c  X-Evil: 1    --b" {
		t.Errorf("filename %q, %v", params["filename"], err)
	}
	if got, err := io.ReadAll(part); err != nil || string(got) != "abc" {
		t.Errorf("content %q, %v", got, err)
	}
}

func TestRelatedReaderRefusals(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		kind                    fault.Kind
	}{
		{"no boundary", "multipart/related", "", fault.BadRequest},
		{"another type", "multipart/mixed; boundary=x", "", fault.BadContentType},
		{"nothing", "multipart/related; boundary=x", "", fault.BadRequest},
		{"no part", "multipart/related; boundary=x", "--x--", fault.BadRequest},
		{"cut off", "multipart/related; boundary=x", "--x\r\n\r\n{", fault.BadRequest},
		{"too large", "multipart/related; boundary=x", "--x\r\n\r\n" + strings.Repeat("x", 200) + "\r\n--x--", fault.RequestTooLarge},
	} {
		if _, text, err := NewRelatedReader(strings.NewReader(c.body), c.contentType, UpTo(100)); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %q, %v; want kind %d", c.name, text, err, c.kind)
		}
	}
}

// FuzzRelatedReader feeds bodies that need not be multipart at all; for any body, reading ends and
// fails only with refusals of the client.
func FuzzRelatedReader(f *testing.F) {
	f.Add("multipart/related;boundary=\"abc123\"", "--abc123\r\nContent-Type: application/json\r\n\r\n{\"v\":1}\r\n--abc123\r\n\r\nfirst\r\n--abc123--")
	f.Add("multipart/related; boundary=xyz", "this is skipped\r\n--xyz\r\n\r\n{}\r\n--xyz\r\nContent-Encoding: gzip\r\n\r\nabcd\r\n--xyz--")
	f.Add("multipart/related; boundary=x", "--x\n\n{}\n--x--\n")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		r, _, err := NewRelatedReader(strings.NewReader(body), contentType, UpTo(1<<10))
		for i := 0; err == nil && i < 100; i++ {
			var part io.Reader
			if part, err = r.Next(&doc.AttachmentSpec{Name: "a"}); err == nil {
				_, err = io.Copy(io.Discard, part)
			}
		}
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Fatalf("%q, %q: %v", contentType, body, err)
		}
		if r != nil {
			r.Drain()
		}
	})
}

// FuzzRelatedRoundTrip writes documents with any content and reads them back.
func FuzzRelatedRoundTrip(f *testing.F) {
	f.Add("a.bin", "text/plain", []byte("hello\r\n--"))
	f.Add("", "", []byte{})
	f.Fuzz(func(t *testing.T, name, contentType string, content []byte) {
		a := doc.Attachment{Name: name, ContentType: contentType, StoredLength: int64(len(content))}
		m := Related{Boundary: Boundary(), JSON: []byte(`{"_id":"x"}`), Atts: []doc.Attachment{a, a}}
		var out bytes.Buffer
		if err := m.Write(t.Context(), &out, contents{name: string(content)}); err != nil {
			t.Fatal(err)
		}
		if int64(out.Len()) != m.Size() {
			t.Fatalf("wrote %d, announced %d", out.Len(), m.Size())
		}
		r, text, err := NewRelatedReader(&out, m.ContentType(), UpTo(1<<20))
		if err != nil || !bytes.Equal(text, m.JSON) {
			t.Fatalf("%q, %v", text, err)
		}
		for range 2 {
			part, err := r.Next(&doc.AttachmentSpec{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("%q, %v; want %q", got, err, content)
			}
		}
	})
}
