package doc

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"divan/storage/fault"
)

// TestEnvelopeBody holds the body and the plain underscore members to golden
// docs/01, docs/08 and docs/09.
func TestEnvelopeBody(t *testing.T) {
	t.Parallel()
	const replication = `{"_replication_state":"x","_replication_state_time":1,"_replication_state_reason":"y","_replication_id":"z","_replication_stats":{"a":1},"_access":["b"]}`
	for _, c := range []struct {
		in, body, id, rev string
		deleted           bool
	}{
		{in: `{}`, body: `{}`},
		{in: ` { } `, body: `{}`},
		{in: `{"a":1}`, body: `{"a":1}`},
		{in: "\n{ \"a\" : 1 ,\t\"b\" : [ 1 , 2 ] }\r\n", body: `{"a":1,"b":[1,2]}`},
		{in: `{"_id":"x","a":1}`, body: `{"a":1}`, id: "x"},
		{in: `{"a":1,"_id":"x"}`, body: `{"a":1}`, id: "x"},
		{in: `{"a":1,"_id":"x","b":2}`, body: `{"a":1,"b":2}`, id: "x"},
		{in: `{ "a" : 1 , "_id" : "x" , "b" : 2 }`, body: `{"a":1,"b":2}`, id: "x"},
		{in: `{"a":1,"_id":"x" ,"b":2}`, body: `{"a":1,"b":2}`, id: "x"},
		{in: `{"_id":"x","_rev":"1-abc"}`, body: `{}`, id: "x", rev: "1-abc"},
		{in: `{"_id":"x" , "_rev":"1-abc" }`, body: `{}`, id: "x", rev: "1-abc"},
		{in: `{"\u005fid":"x","\u0061":1,"\u0062":2}`, body: `{"a":1,"b":2}`, id: "x"},
		{in: `{"a":1,"\u005fid":"\u0078\/y","b":2,"\u0063":3}`, body: `{"a":1,"b":2,"c":3}`, id: "x/y"},
		{in: `{"_rev":"1-0123456789ABCDEF0123456789abcdef","v":-0.0}`, body: `{"v":-0.0}`, rev: "1-0123456789abcdef0123456789abcdef"},
		{in: `{"_id":"_local/a","_rev":"0-7"}`, body: `{}`, id: "_local/a", rev: "0-7"},
		{in: `{"_id":"_design/a"}`, body: `{}`, id: "_design/a"},
		{in: `{"_deleted":true,"a":1}`, body: `{"a":1}`, deleted: true},
		{in: `{"_deleted": false, "v": 1}`, body: `{"v":1}`},
		{in: `{"_deleted":true,"_deleted":false}`, body: `{}`},
		{in: `{"_id":"x","_id":"y","a":1,"a":2}`, body: `{"a":2}`, id: "y"},
		{in: `{"_revs_info": [{"rev": "x"}], "_local_seq": 5, "_conflicts": ["nonsense"], "_deleted_conflicts": 7, "v": 2}`, body: `{"v":2}`},
		{in: replication, body: replication},
		{in: `{"a": {"_foo": 1, "_id": 5}}`, body: `{"a":{"_foo":1,"_id":5}}`},
		{in: `{"":1,"b":{},"c":[],"_id":"x"}`, body: `{"":1,"b":{},"c":[]}`, id: "x"},
		{in: `{"big":1e20,"_id":"x","bigger":[1e20,1e20,1e20,1e20]}`, body: `{"big":100000000000000000000.0,"bigger":[100000000000000000000.0,100000000000000000000.0,100000000000000000000.0,100000000000000000000.0]}`, id: "x"},
	} {
		e, err := ParseEnvelope([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		rev := ""
		if e.HasRev {
			rev = e.Rev.String()
		}
		if string(e.Body) != c.body || e.ID != c.id || e.HasID != (c.id != "") || rev != c.rev || e.Deleted != c.deleted {
			t.Errorf("%s: body %s, id %q, rev %q, deleted %v", c.in, e.Body, e.ID, rev, e.Deleted)
		}
	}
}

// TestEnvelopeRefusals has every refused document of golden docs/02, docs/03,
// docs/08, docs/09, bulk/02 and attachments/02.
func TestEnvelopeRefusals(t *testing.T) {
	t.Parallel()
	const (
		malformed = "invalid UTF-8 JSON"
		special   = "Bad special document member: "
	)
	for _, c := range []struct {
		in     string
		kind   fault.Kind
		reason string
	}{
		{``, fault.BadRequest, malformed},
		{` `, fault.BadRequest, malformed},
		{`hello`, fault.BadRequest, malformed},
		{`null`, fault.BadRequest, notObject},
		{`"text"`, fault.BadRequest, notObject},
		{`12`, fault.BadRequest, notObject},
		{`true`, fault.BadRequest, notObject},
		{`[]`, fault.BadRequest, notObject},
		{`[] x`, fault.BadRequest, malformed},
		{`{"a": 1,}`, fault.BadRequest, malformed},
		{`{"a": 1} x`, fault.BadRequest, malformed},
		{`{,"a": 1}`, fault.BadRequest, malformed},
		{`{"_id":"x",}`, fault.BadRequest, malformed},
		{`{"_id":"x" "a":1}`, fault.BadRequest, malformed},
		{`{"_foo": 1, "v": 1e309}`, fault.BadRequest, malformed},
		{`{"_id": 1e309}`, fault.BadRequest, malformed},
		{`{"_foo": 1`, fault.BadRequest, malformed},
		{`{"_fo`, fault.BadRequest, malformed},
		{`{"`, fault.BadRequest, malformed},
		{`{"\`, fault.BadRequest, malformed},
		{`{"\ud800":1}`, fault.BadRequest, malformed},
		{`{"a":1,"_rev"}`, fault.BadRequest, malformed},
		{`{"_foo": 1}`, fault.DocValidation, special + "_foo"},
		{`{"_": 1}`, fault.DocValidation, special + "_"},
		{`{"\u005ffoo\u0000": 1}`, fault.DocValidation, special + "_foo\x00"},
		{`{"_foo": 1, "_id": 5}`, fault.DocValidation, special + "_foo"},
		{`{"_deleted": "true"}`, fault.DocValidation, special + "_deleted"},
		{`{"_deleted": 1}`, fault.DocValidation, special + "_deleted"},
		{`{"_deleted": null}`, fault.DocValidation, special + "_deleted"},
		{`{"_revisions": 1}`, fault.DocValidation, special + "_revisions"},
		{`{"_revisions": {"ids": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}}`, fault.DocValidation, "_revisions.start isn't an integer."},
		{`{"_revisions": {"start": "1", "ids": ["a"]}}`, fault.DocValidation, "_revisions.start isn't an integer."},
		{`{"_revisions": {"start": 1.0, "ids": ["a"]}}`, fault.DocValidation, "_revisions.start isn't an integer."},
		{`{"_revisions": {"start": "x", "ids": []}}`, fault.DocValidation, "_revisions.start isn't an integer."},
		{`{"_revisions": {"start": 1}}`, fault.DocValidation, "_revisions.ids isn't a array."},
		{`{"_revisions": {"start": 1, "ids": "a"}}`, fault.DocValidation, "_revisions.ids isn't a array."},
		{`{"_revisions": {"start": 1, "ids": [1]}}`, fault.DocValidation, "RevId isn't a string"},
		{`{"_revisions": {"start": 1, "ids": ["zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]}}`, fault.DocValidation, "RevId isn't a valid hexadecimal"},
		{`{"_revisions": {"start": 1, "ids": ["a","b"]}}`, fault.DocValidation, "_revisions.ids is longer than _revisions.start allows."},
		{`{"_rev": ""}`, fault.BadRequest, "Invalid rev format"},
		{`{"_rev": 5}`, fault.BadRequest, "Invalid rev format"},
		{`{"_rev": null}`, fault.BadRequest, "Invalid rev format"},
		{`{"_rev": "x"}`, fault.BadRequest, "Invalid rev format"},
		{`{"_rev": "5-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"}`, fault.BadRequest, "Invalid rev format"},
		{`{"_id": 5}`, fault.IllegalDocID, "Document id must be a string"},
		{`{"_id": null}`, fault.IllegalDocID, "Document id must be a string"},
		{`{"_id": ""}`, fault.IllegalDocID, "Document id must not be empty"},
		{`{"_id": "_bad"}`, fault.IllegalDocID, "Only reserved document ids may start with underscore."},
		{`{"_id": "_design"}`, fault.IllegalDocID, "Only reserved document ids may start with underscore."},
		{`{"_id": "_design/"}`, fault.IllegalDocID, "Illegal document id `_design/`"},
		{`{"_id": "_local/"}`, fault.IllegalDocID, "Illegal document id `_local/`"},
		{`{"_attachments": 5}`, fault.DocValidation, special + "_attachments"},
		{`{"_attachments": []}`, fault.DocValidation, special + "_attachments"},
		{`{"_attachments": {"a.txt": {"data": "***"}}}`, fault.BadRequest, "Invalid attachment data for a.txt"},
		{`{"_attachments": {"a.txt": {"content_type": "text/plain"}}}`, fault.BadRequest, "Invalid attachment data for a.txt"},
		{`{"_attachments": {"a.txt": {}}}`, fault.BadRequest, "Invalid attachment data for a.txt"},
		{`{"_attachments": {"a.txt": "YQ=="}}`, fault.BadRequest, "Invalid attachment data for a.txt"},
		{`{"_attachments": {"a.bin": {"stub": false}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": "aGVsbG8gd29ybGQ"}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": "-_-_"}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": "=="}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": "A==="}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": "Y=Q="}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": 5}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"a.bin": {"data": null}}}`, fault.BadRequest, "Invalid attachment data for a.bin"},
		{`{"_attachments": {"_a.txt": {"data": ""}}}`, fault.BadRequest, "Attachment name '_a.txt' starts with prohibited character '_'"},
		{`{"_attachments": {"a": {"stub":true, "revpos": "1"}}}`, fault.DocValidation, special + "_attachments"},
		{`{"_attachments": {"a": {"data":"", "content_type": 1}}}`, fault.DocValidation, special + "_attachments"},
	} {
		_, err := ParseEnvelope([]byte(c.in))
		if !fault.Is(err, c.kind) || fault.Reason(err) != c.reason {
			t.Errorf("%s: %v (kind %d); want %q", c.in, err, fault.KindOf(err), c.reason)
		}
	}
}

// TestEnvelopeRevisions follows golden docs/13: _revisions rules over _rev,
// whichever comes first.
func TestEnvelopeRevisions(t *testing.T) {
	t.Parallel()
	const one, two = "11111111111111111111111111111111", "22222222222222222222222222222222"
	raw := func(c byte) string { return strings.Repeat(string(c), rawIDLen) }
	both := Path{Start: 2, IDs: []string{raw(0x22), raw(0x11)}}
	for _, c := range []struct {
		in   string
		want Path
	}{
		{`{"_rev":"1-` + one + `"}`, Path{1, []string{raw(0x11)}}},
		{`{"_rev":"1-x","_revisions":{"start":2,"ids":["` + two + `","` + one + `"]}}`, both},
		{`{"_revisions":{"ids": [ "` + two + `" , "` + one + `" ], "start": 2},"_rev":"nonsense"}`, both},
		{`{"_revisions":{"start":7,"ids":["abc","a,\u0062","` + strings.ToUpper(two) + `"],"more":1}}`, Path{7, []string{"abc", "a,b", raw(0x22)}}},
		{`{"_revisions":{"start":0,"ids":[]},"_rev":"3-x"}`, Path{3, []string{"x"}}},
		{`{}`, Path{}},
	} {
		e, err := ParseEnvelope([]byte(c.in))
		if got := e.Path(); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v", c.in, got, err)
		}
		if e.HasRevisions != strings.Contains(c.in, `s":["`) && e.HasRevisions != strings.Contains(c.in, `s": [ "`) {
			t.Errorf("%s: HasRevisions %v", c.in, e.HasRevisions)
		}
	}
}

// TestEnvelopeAttachments follows golden attachments/02, 03 and bulk/03.
func TestEnvelopeAttachments(t *testing.T) {
	t.Parallel()
	spec := func(change func(*AttachmentSpec)) AttachmentSpec {
		a := AttachmentSpec{Name: "a.bin", ContentType: DefaultContentType, Length: -1, EncodedLength: -1}
		change(&a)
		return a
	}
	for _, c := range []struct {
		in   string
		want AttachmentSpec
		data string
	}{
		{`{"content_type":"text/plain","data":"aGVsbG8gd29ybGQ="}`, spec(func(a *AttachmentSpec) {
			a.ContentType, a.HasData, a.Data = "text/plain", true, []byte("aGVsbG8gd29ybGQ=")
		}), "hello world"},
		{`{"data": "aGVs\nbG8g\r\nd29y bGQ="}`, spec(func(a *AttachmentSpec) {
			a.HasData, a.Data = true, []byte("aGVs\nbG8g\r\nd29y bGQ=")
		}), "hello world"},
		{`{"data":"\/\/\/\/"}`, spec(func(a *AttachmentSpec) { a.HasData, a.Data = true, []byte("////") }), "\xff\xff\xff"},
		{`{"data":""}`, spec(func(a *AttachmentSpec) { a.HasData, a.Data = true, []byte{} }), ""},
		{`{"color":"red","digest":"md5-AAAA","length":99,"revpos":7,"data":"YQ=="}`, spec(func(a *AttachmentSpec) {
			a.HasData, a.Data, a.Digest, a.Length, a.RevPos, a.HasRevPos = true, []byte("YQ=="), "md5-AAAA", 99, 7, true
		}), "a"},
		{`{"stub":true}`, spec(func(a *AttachmentSpec) { a.Stub = true }), ""},
		{`{"stub":true,"data":"***","follows":true,"revpos":0}`, spec(func(a *AttachmentSpec) { a.Stub, a.HasRevPos = true, true }), ""},
		{`{"follows":true,"length":5,"encoded_length":3,"encoding":"gzip"}`, spec(func(a *AttachmentSpec) {
			a.Follows, a.Length, a.EncodedLength, a.Encoding = true, 5, 3, "gzip"
		}), ""},
		{`{"follows":true,"length":"5","encoded_length":-1}`, spec(func(a *AttachmentSpec) { a.Follows = true }), ""},
	} {
		e, err := ParseEnvelope([]byte(`{"v":1,"_attachments":{"a.bin":` + c.in + `}}`))
		if err != nil || !e.HasAtts || len(e.Atts) != 1 || string(e.Body) != `{"v":1}` {
			t.Errorf("%s: %v, %+v", c.in, err, e)
			continue
		}
		if a := e.Atts[0]; !reflect.DeepEqual(a, c.want) {
			t.Errorf("%s: %+v", c.in, a)
		}
		data, err := e.Atts[0].AppendData(nil)
		if string(data) != c.data || err != nil || e.Atts[0].DataLen() != int64(len(c.data)) {
			t.Errorf("%s: data %q (%d), %v", c.in, data, e.Atts[0].DataLen(), err)
		}
	}
	e, err := ParseEnvelope([]byte(`{"_attachments":{},"v":2}`))
	if err != nil || !e.HasAtts || e.Atts != nil {
		t.Errorf("empty: %+v, %v", e, err)
	}
	e, err = ParseEnvelope([]byte(`{"_attachments":{"":{"data":"YQ=="},"b/c ü":{"stub":true}}}`))
	if err != nil || len(e.Atts) != 2 || e.Atts[0].Name != "" || e.Atts[1].Name != "b/c ü" {
		t.Errorf("names: %+v, %v", e, err)
	}
}

// TestEnvelopeKeepsNothing checks that the result does not alias the text.
// TestManyAttachments has names enough that comparing each with all of them
// would take half a minute.
func TestManyAttachments(t *testing.T) {
	t.Parallel()
	names := func(n int, more ...string) []byte {
		text := []byte(`{"_attachments":{`)
		for i := range n {
			text = fmt.Appendf(text, `"a%d":{"stub":true},`, i)
		}
		for _, name := range more {
			text = fmt.Appendf(text, `"%s":{"stub":true},`, name)
		}
		return append(text[:len(text)-1], "}}"...)
	}
	env, err := ParseEnvelope(names(100_000))
	if err != nil || len(env.Atts) != 100_000 || env.Atts[99_999].Name != "a99999" {
		t.Fatalf("%d attachments, %v", len(env.Atts), err)
	}
	for _, again := range []string{"a0", "a99"} {
		env, err := ParseEnvelope(names(100, "b", again))
		if err != nil || len(env.Atts) != 101 || env.Atts[100].Name != again {
			t.Errorf("%s again: %d, %v", again, len(env.Atts), err)
		}
	}
}

func TestEnvelopeKeepsNothing(t *testing.T) {
	t.Parallel()
	text := []byte(`{"_id":"abc","_rev":"1-xyz","_attachments":{"n":{"stub":true,"content_type":"t/t"}},"v":[1,2,3]}`)
	e, err := ParseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%q", []any{e.ID, e.RevText, e.Rev, e.Atts[0].Name, e.Atts[0].ContentType, e.Body})
	for i := range text {
		text[i] = 'X'
	}
	after := fmt.Sprintf("%q", []any{e.ID, e.RevText, e.Rev, e.Atts[0].Name, e.Atts[0].ContentType, e.Body})
	if before != after {
		t.Errorf("changed with the text: %s, was %s", after, before)
	}
}

// TestAppendHead checks the order of members and that the splice parses back.
func TestAppendHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    Splice
		want string
	}{
		{Splice{ID: "a", Rev: Rev{1, "x"}, Body: []byte(`{}`)}, `{"_id":"a","_rev":"1-x"`},
		{Splice{ID: "a", Rev: Rev{1, "x"}}, `{"_id":"a","_rev":"1-x"`},
		{Splice{ID: "q\"\n", Rev: Rev{1, "x\"y"}, Body: []byte(`{"v":1}`), Deleted: true}, `{"_id":"q\"\n","_rev":"1-x\"y","v":1,"_deleted":true`},
		{Splice{ID: "é", Rev: Rev{12, "0123456789abcdef"}, Body: []byte(`{"v":1,"w":{}}`)}, `{"_id":"é","_rev":"12-30313233343536373839616263646566","v":1,"w":{}`},
	} {
		got := AppendHead([]byte("x"), c.s)
		if string(got) != "x"+c.want {
			t.Errorf("%+v: %s", c.s, got)
		}
		e, err := ParseEnvelope(append(got[1:], '}'))
		if err != nil || e.ID != c.s.ID || e.Rev != c.s.Rev || e.Deleted != c.s.Deleted {
			t.Errorf("%s parses to %+v, %v", got, e, err)
		}
	}
}

// TestValidateID covers what only an id from a URL can be.
func TestValidateID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"a": "", "a_": "", "ü": "", " ": "", "_design/x": "", "_local/x": "", "a/b": "",
		"\xff\xfe": "Document id must be valid UTF-8", "": "Document id must not be empty",
		"_x": "Only reserved document ids may start with underscore.",
	} {
		if err := ValidateID(id); fault.Reason(err) != want || (err == nil) != (want == "") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
