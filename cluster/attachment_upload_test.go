package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"divan/cluster/attachment"
	"divan/cluster/config"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// noise returns bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b) // never fails
	return b
}

// store uploads content, writes a document with it and reads it back as
// stored.
func store(t *testing.T, d *DB, id string, o attachment.Options, content []byte) (shard.EditAttachment, []byte) {
	t.Helper()
	// A reader that gives odd pieces, and io.EOF together with the last one.
	r := iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(content)))
	att, err := d.Upload(t.Context(), id, o, r)
	if err != nil {
		t.Fatal(err)
	}
	res := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: id, Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	got, err := d.Open(t.Context(), OpenOptions{ID: id})
	if err != nil || len(got.Atts) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	body, err := d.ReadAttachment(t.Context(), id, got.Atts[0], 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }() // read only
	stored, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(stored)) != got.Atts[0].StoredLength || md5.Sum(stored) != got.Atts[0].Digest {
		t.Fatalf("%d stored bytes, %+v", len(stored), got.Atts[0])
	}
	return att, stored
}

func TestUpload(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	text := []byte(strings.Repeat("a line of text\n", 100_000))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(text) // to memory
	_ = z.Close()
	for _, tc := range []struct {
		name    string
		o       attachment.Options
		content []byte
		data    bool // stays in Data
		gzip    bool // stored compressed by us
	}{
		{name: "empty", o: attachment.Options{ContentType: "image/png"}, data: true},
		{name: "small", o: attachment.Options{ContentType: "image/png"}, content: noise(100), data: true},
		{name: "largest small", o: attachment.Options{ContentType: "image/png"}, content: noise(attachment.MaxInline), data: true},
		{name: "smallest large", o: attachment.Options{ContentType: "image/png"}, content: noise(attachment.MaxInline + 1)},
		{name: "large", o: attachment.Options{ContentType: "image/png"}, content: noise(3<<20 + 17)},
		{name: "exact blocks", o: attachment.Options{ContentType: "image/png"}, content: noise(4 * attachment.BlockSize)},
		{name: "small text", o: attachment.Options{ContentType: "text/plain"}, content: text[:1000], data: true, gzip: true},
		{name: "large text", o: attachment.Options{ContentType: "text/plain; charset=utf-8"}, content: text, gzip: true},
		{name: "text that is noise", o: attachment.Options{ContentType: "text/plain"}, content: noise(1 << 20), gzip: true},
		{name: "no type", content: text[:1000], data: true},
		{name: "compressed by the client", o: attachment.Options{ContentType: "text/plain", Encoding: "gzip"}, content: zipped.Bytes(), data: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Name, tc.o.Length = "att", int64(len(tc.content))
			att, stored := store(t, d, strings.ReplaceAll(tc.name, " ", "-"), tc.o, tc.content)
			if att.Length != int64(len(tc.content)) || (att.Data != nil) != tc.data || att.Gzip != (tc.gzip || tc.o.Encoding == "gzip") {
				t.Fatalf("%+v", att.Attachment)
			}
			if tc.gzip {
				r, err := gzip.NewReader(bytes.NewReader(stored))
				if err != nil {
					t.Fatal(err)
				}
				if stored, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(stored, tc.content) {
				t.Fatalf("%d bytes come back, %d went in", len(stored), len(tc.content))
			}
		})
	}
}

func TestUploadIsTheSameEverywhere(t *testing.T) {
	text := []byte(strings.Repeat("compressible ", 50_000))
	var digests [2][16]byte
	for i := range digests {
		w := start(t, setup{})
		att, err := w.create("db", CreateOptions{}).Upload(t.Context(), "a", attachment.Options{ContentType: "text/plain", Length: -1}, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = att.Digest
		w.open("db").Discard(t.Context(), "a", []shard.EditAttachment{att})
	}
	if digests[0] != digests[1] {
		t.Fatal("two nodes compress the same text differently")
	}
}

func TestUploadRefusals(t *testing.T) {
	w := start(t, setup{config: config.Values{"couchdb": {"max_attachment_size": "1000000"}}})
	d := w.create("db", CreateOptions{})
	broken := errors.New("broken")
	for _, tc := range []struct {
		name   string
		o      attachment.Options
		r      io.Reader
		kind   fault.Kind
		reason string
		is     error
	}{
		{name: "shorter", o: attachment.Options{Length: 11}, r: strings.NewReader("ten bytes."), kind: fault.BadRequest, reason: "attachment shorter than expected"},
		{name: "longer", o: attachment.Options{Length: 9}, r: strings.NewReader("ten bytes."), kind: fault.BadRequest, reason: "attachment longer than expected"},
		{name: "shorter, large", o: attachment.Options{Length: 900_001}, r: bytes.NewReader(noise(900_000)), kind: fault.BadRequest, reason: "attachment shorter than expected"},
		{name: "longer, large", o: attachment.Options{Length: 899_999}, r: bytes.NewReader(noise(900_000)), kind: fault.BadRequest, reason: "attachment longer than expected"},
		{name: "too large, told before", o: attachment.Options{Length: 1_000_001}, r: strings.NewReader(""), kind: fault.AttachmentTooLarge, reason: "att"},
		{name: "too large", o: attachment.Options{Length: -1}, r: bytes.NewReader(noise(1_000_001)), kind: fault.AttachmentTooLarge, reason: "att"},
		{name: "too large text", o: attachment.Options{Length: -1, ContentType: "text/plain"}, r: bytes.NewReader(noise(1_000_001)), kind: fault.AttachmentTooLarge, reason: "att"},
		{name: "a limit of its own", o: attachment.Options{Length: -1, MaxSize: 5}, r: strings.NewReader("ten bytes."), kind: fault.AttachmentTooLarge, reason: "att"},
		{name: "encoding", o: attachment.Options{Length: -1, Encoding: "br"}, r: strings.NewReader("x"), kind: fault.BadContentType, reason: "Only gzip and identity content-encodings are supported"},
		{name: "the client fails", o: attachment.Options{Length: -1}, r: io.MultiReader(bytes.NewReader(noise(500_000)), iotest.ErrReader(broken)), kind: fault.Internal, is: broken},
		{name: "the client fails, text", o: attachment.Options{Length: -1, ContentType: "text/plain"}, r: io.MultiReader(bytes.NewReader(noise(500_000)), iotest.ErrReader(broken)), kind: fault.Internal, is: broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Name = "att"
			_, err := d.Upload(t.Context(), "a", tc.o, tc.r)
			if !fault.Is(err, tc.kind) || fault.Reason(err) != tc.reason || (tc.is != nil && !errors.Is(err, tc.is)) {
				t.Fatalf("%v", err)
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	core, seen := zapobserver.New(zap.WarnLevel)
	w := start(t, setup{still: true})
	w.log = zap.New(core)
	d := w.create("db", CreateOptions{})
	att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(noise(1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		r, err := d.ReadAttachment(t.Context(), "a", att.Attachment, 0, -1)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			_ = r.Close()
		}
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	d.Discard(t.Context(), "a", []shard.EditAttachment{att, {Stub: true}, {Data: []byte("x")}})
	if err := read(); err == nil {
		t.Fatal("discarded content is still there")
	}
	// Of a database that is gone nothing stays: no reason for a warning.
	if err := w.DeleteDB(t.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	d.Discard(t.Context(), "a", []shard.EditAttachment{att})
	for _, line := range seen.All() {
		t.Errorf("logged: %s %v", line.Message, line.ContextMap())
	}
}

func TestReadPartOfAttachment(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	content := noise(1 << 20)
	att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	put := shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}}
	if r := update(t, d, UpdateOptions{NewEdits: true}, put)[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	r, err := d.ReadAttachment(t.Context(), "a", doc.Attachment{Key: att.Key}, 300_000, 400_000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // read only
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, content[300_000:700_000]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// BenchmarkDigest is what BenchmarkUpload cannot be faster than.
func BenchmarkDigest(b *testing.B) {
	content := noise(64 << 20)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		md5.Sum(content)
	}
}

func BenchmarkUpload(b *testing.B) {
	for _, tc := range []struct {
		name, contentType string
		content           []byte
	}{
		{"small", "image/png", noise(4 << 10)},
		{"small-text", "text/plain", []byte(strings.Repeat("some text ", 400))},
		{"large", "image/png", noise(64 << 20)},
	} {
		b.Run(tc.name, func(b *testing.B) {
			w := start(b, setup{})
			d := w.create("db", CreateOptions{})
			b.SetBytes(int64(len(tc.content)))
			for b.Loop() {
				att, err := d.Upload(b.Context(), "a", attachment.Options{ContentType: tc.contentType, Length: -1}, bytes.NewReader(tc.content))
				if err != nil {
					b.Fatal(err)
				}
				d.Discard(b.Context(), "a", []shard.EditAttachment{att})
			}
		})
	}
}
