package doc

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"divan/storage/fault"
)

// seeds are texts that meet every branch of the scanner.
func seeds() []string {
	return []string{
		``, `{}`, `[]`, `null`, `-0`, `1e3`, `-0.0`, `1e309`, `0.000001`, `1e-7`, `123456789012345678901234567890`, `"\ud83c\udf4b"`, `"\ud800"`,
		`{"_id":"a","_rev":"1-abc","v":[1,2.50,{"x":null}]}`, `{ "a" : 1 , "_id" : "x" , "\u005frev" : "2-x" }`,
		`{"_revisions":{"start":2,"ids":["22222222222222222222222222222222","b"]},"_deleted":true}`,
		`{"_attachments":{"a":{"data":"aGVs\nbG8=","content_type":"t"},"b":{"stub":true,"revpos":3},"c":{"follows":true,"length":3}}}`,
		`{"docs":[{"_id":"a"},{"b":1e20}],"new_edits":false,"w":2}`, "\"a\x00b\"", "\"\xff\"", `{"a":1,"a":2}`, `{"_foo":1}`,
		strings.Repeat("[", 1001), `"` + strings.Repeat("é", 9) + `\n\u0001\/"`,
	}
}

// stdValue is what encoding/json makes of a text; numbers stay texts. ok is
// false when the text is no JSON for it.
func stdValue(text []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

// numbersAsFloats makes values comparable whose numbers are written in
// different ways.
func numbersAsFloats(v any) any {
	switch v := v.(type) {
	case json.Number:
		if v == "-0" {
			return "0"
		}
		if !strings.ContainsAny(string(v), ".eE") {
			return string(v)
		}
		f, _ := v.Float64()
		return f + 0 // both zeros are one
	case []any:
		for i := range v {
			v[i] = numbersAsFloats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbersAsFloats(v[k])
		}
	}
	return v
}

// stdLenient tells the texts that encoding/json may take and this package
// refuses: it replaces bad UTF-8 and lone surrogates, and takes floats of any
// size.
func stdLenient(text []byte) bool {
	return !utf8.Valid(text) || bytes.Contains(bytes.ToLower(text), []byte(`\ud`)) || bytes.ContainsAny(text, "eE")
}

// FuzzCanonical checks that canonical text is canonical, that it means what
// the input means to encoding/json, and that both accept the same texts.
func FuzzCanonical(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Canonical(nil, text)
		want, ok := stdValue(text)
		if err != nil {
			if !fault.Is(err, fault.BadRequest) {
				t.Fatalf("error %v", err)
			}
			if ok && !stdLenient(text) && fault.Reason(err) == "invalid UTF-8 JSON" {
				t.Fatalf("refused: %q", text)
			}
			return
		}
		if !ok {
			t.Fatalf("accepted: %q", text)
		}
		again, err := Canonical(nil, got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q becomes %q becomes %q, %v", text, got, again, err)
		}
		value, ok := stdValue(got)
		if !ok || !reflect.DeepEqual(numbersAsFloats(value), numbersAsFloats(want)) {
			t.Fatalf("%q becomes %q", text, got)
		}
		if s, isString := value.(string); isString {
			mine, ok := Unquote(bytes.TrimSpace(text))
			if !ok || mine != s || string(AppendString(nil, s)) != string(got) {
				t.Fatalf("%q is %q for Unquote", text, mine)
			}
		}
	})
}

// FuzzParseEnvelope checks that a document that is taken reads back from what
// AppendHead writes, and that its body has no underscore member left.
func FuzzParseEnvelope(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEnvelope(text)
		if err != nil {
			if k := fault.KindOf(err); k != fault.BadRequest && k != fault.DocValidation && k != fault.IllegalDocID {
				t.Fatalf("error %v", err)
			}
			return
		}
		whole, err := Canonical(nil, text)
		if err != nil {
			t.Fatalf("%q is taken, but no JSON", text)
		}
		if again, err := Canonical(nil, e.Body); err != nil || !bytes.Equal(again, StoredBody(e.Body)) {
			t.Fatalf("%q: body %q is not canonical", text, e.Body)
		}
		checkBody(t, whole, e)
		back, err := ParseEnvelope(append(AppendHead(nil, Splice{ID: e.ID, Rev: e.Rev, Deleted: e.Deleted, Body: e.Body}), '}'))
		if e.HasID && e.HasRev && (err != nil || back.ID != e.ID || back.Rev != e.Rev || back.Deleted != e.Deleted || !bytes.Equal(back.Body, e.Body)) {
			t.Fatalf("%q: reads back as %+v, %v", text, back, err)
		}
		for i := range e.Atts {
			data, err := e.Atts[i].AppendData(nil)
			if err != nil || int64(len(data)) != e.Atts[i].DataLen() {
				t.Fatalf("%q: attachment %q: %d bytes of %d, %v", text, e.Atts[i].Name, len(data), e.Atts[i].DataLen(), err)
			}
		}
	})
}

// checkBody compares the body with the members of the whole document, as
// EachMember tells them.
func checkBody(t *testing.T, whole []byte, e Envelope) {
	t.Helper()
	want := []byte{'{'}
	err := EachMember(whole, func(name string, value []byte) error {
		if strings.HasPrefix(name, "_") && !isData([]byte(name)) {
			return nil
		}
		if len(want) > 1 {
			want = append(want, ',')
		}
		want = append(AppendString(want, name), ':')
		want = append(want, value...)
		return nil
	})
	if want = append(want, '}'); err != nil || !bytes.Equal(want, StoredBody(e.Body)) {
		t.Fatalf("%q: body %q, want %q (%v)", whole, e.Body, want, err)
	}
}

// FuzzParseBulk holds ParseBulk to what three passes over the text find.
func FuzzParseBulk(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
		f.Add([]byte(`{"docs":[` + s + `,` + s + `]}`))
	}
	f.Add([]byte(`{"docs":[{"_id":"a","_attachments":{"f":{"data":"aGVsbG8="}}},{"_id":"b","c":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ParseBulk(text, nil)
		var docs []byte
		each := EachMember(text, func(name string, value []byte) error {
			if name == "docs" {
				docs = value
			}
			return nil
		})
		if err == nil && (each != nil || !IsArray(docs)) {
			t.Fatalf("%q is taken", text)
		}
		var want []Envelope
		slow := EachElement(docs, func(value []byte) error {
			e, err := ParseEnvelope(value)
			want = append(want, e)
			return err
		})
		if err == nil && (slow != nil || !reflect.DeepEqual(b.Docs, want)) {
			t.Fatalf("%q: %+v, want %+v (%v)", text, b.Docs, want, slow)
		}
		if each != nil && err != nil && fault.Reason(each) != fault.Reason(err) {
			t.Fatalf("%q: %v, want %v", text, err, each)
		}
		sameWhenRead(t, text, b, err)
	})
}

// sameWhenRead holds ReadBulk to what ParseBulk makes of a body, however it comes.
func sameWhenRead(t *testing.T, text []byte, want Bulk, wantErr error) {
	t.Helper()
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(text), "bytes": iotest.OneByteReader(bytes.NewReader(text)), "data and end": iotest.DataErrReader(bytes.NewReader(text))} {
		lent := []byte("of another body")
		got, err := ReadBulk(r, BulkLimits{Document: math.MaxInt, Space: func(int) error { return nil }, Text: &lent})
		for i := range lent[:cap(lent)] {
			lent[:cap(lent)][i] = '#' // another body has it now
		}
		if (err == nil) != (wantErr == nil) || err != nil && (fault.Reason(err) != fault.Reason(wantErr) || fault.KindOf(err) != fault.KindOf(wantErr)) {
			t.Fatalf("%s %q: %v, want %v", name, text, err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %q: %+v, want %+v", name, text, got, want)
		}
	}
}

// FuzzParseRev checks that a revision that is taken prints as one that is the
// same.
func FuzzParseRev(f *testing.F) {
	for _, s := range []string{"", "1-a", "1-0123456789abcdef0123456789abcdef", "0-7", "5", "-", "9223372036854775807-x", "3-abcdefghijklmnop"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRev(s)
		if err != nil {
			return
		}
		again, err := ParseRev(r.String())
		if len(r.ID) == rawIDLen && err != nil || err == nil && again.String() != r.String() {
			t.Fatalf("%q prints as %q, %v", s, r, err)
		}
		if quoted, ok := Unquote(r.AppendJSON(nil)); !ok || utf8.ValidString(s) && quoted != r.String() {
			t.Fatalf("%q is %q in JSON", s, quoted)
		}
	})
}

// FuzzDecodeRecord checks that no bytes make the decoders panic or disagree,
// and that what decodes keeps the tree's invariants and encodes again.
func FuzzDecodeRecord(f *testing.F) {
	tree := lineTree(3)
	tree.Merge(Path{Start: 3, IDs: []string{"foreign", tree.nodes[1].id}}, Node{Rev: Rev{3, "foreign"}, Deleted: true})
	tree.Merge(Path{Start: 9, IDs: []string{"root"}}, Node{Rev: Rev{9, "root"}, Stored: true, Active: 1000})
	f.Add((&Record{Winner: Rev{9, "root"}, Seq: 1 << 40, Tree: tree, Inline: Revision{Body: []byte(`{}`)}.AppendBinary(nil)}).AppendBinary(nil))
	f.Add((&Record{Winner: Rev{9, "0123456789abcdef"}, Deleted: true}).AppendBinary(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Head
		headErr := DecodeHead(b, &h)
		r, err := DecodeRecord("x", b)
		if err != nil {
			return
		}
		if headErr != nil || !reflect.DeepEqual(h, Head{Seq: r.Seq, Winner: r.Winner, Deleted: r.Deleted, External: r.External, Active: r.Active, Inline: r.Inline}) {
			t.Fatalf("head %+v, %v; record %+v", h, headErr, r)
		}
		if d := r.Tree.verify(); d != "" {
			t.Fatal(d)
		}
		again, err := DecodeRecord("x", r.AppendBinary(nil))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v encodes to %+v, %v", r, again, err)
		}
		r.Tree.Stem(2)
		if d := r.Tree.verify(); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzDecodeRevision checks that no bytes make the decoder panic, and that
// what decodes encodes again.
func FuzzDecodeRevision(f *testing.F) {
	f.Add(Revision{Deleted: true, Body: []byte(`{}`), Atts: []Attachment{{Name: "a", ContentType: "t", Length: -1, Gzip: true}, {}}}.AppendBinary(nil))
	f.Add([]byte{0x10, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeRevision(b)
		if err != nil {
			return
		}
		again, err := DecodeRevision(v.AppendBinary(nil))
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("%+v encodes to %+v, %v", v, again, err)
		}
	})
}
