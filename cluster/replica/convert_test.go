package replica

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/find"
	"divan/shard/view"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestEverythingTravels: requests, answers and rows of every operation are on the other
// side what they were here, in every field.
func TestEverythingTravels(t *testing.T) {
	for _, op := range all() {
		if o, ok := op.(interface{ over() any }).over().(interface{ travel(t *rapid.T) }); ok {
			t.Run(reflect.TypeOf(op).Elem().String(), func(t *testing.T) { rapid.Check(t, o.travel) })
		}
	}
}

func (o *Operation[Q, A]) over() any { return o.Over }

func (s *unaryTransport[Q, A, MQ, MA, PQ, PA]) travel(t *rapid.T) {
	there(t, s.request)
	there(t, s.answer)
}

// Rows travel also when the messages on both sides have been used before.
func (s *listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB]) travel(t *rapid.T) {
	there(t, s.request)
	there(t, s.head)
	out, in := PB(new(MB)), PB(new(MB))
	for range 3 {
		var want, got B
		fill(t, reflect.ValueOf(&want).Elem())
		s.batch.encode(&want, out)
		in.ResetVT()
		through(t, out, in)
		s.batch.decode(in, &got)
		survives(t, want, got)
	}
}

func there[T, M any, P message[M]](t *rapid.T, c codec[T, P]) {
	var want T
	v := reflect.ValueOf(&want).Elem()
	if v.Kind() == reflect.Pointer { // answers with something, or else an error
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	fill(t, v)
	m := P(new(M))
	through(t, c.encode(&want), m)
	survives(t, want, c.decode(m))
}

// through sends a message over the wire and decodes what comes out into to.
func through(t *rapid.T, m, to wire.Message) {
	if err := send(m, to, make([]byte, m.SizeVT())); err != nil {
		t.Fatal(err)
	}
}

// survives fails unless got, which has been sent, is what was sent.
func survives[T any](t *rapid.T, want, got T) {
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %#v\nsent %#v", got, want)
	}
}

// fill draws what can be sent. Lists are nil or have elements, and strings are any
// bytes, as the ids of revisions may be.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		if v.Type().PkgPath() != "" { // a choice of few
			v.SetInt(rapid.Int64Range(0, 9).Draw(t, "choice"))
		} else {
			v.SetInt(rapid.Int64().Draw(t, "int"))
		}
	case reflect.Int32: // an index
		v.SetInt(int64(rapid.Int32Range(0, math.MaxInt32).Draw(t, "index")))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8().Draw(t, "byte")))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "number"))
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "string")))
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		elements(t, v)
	case reflect.Array:
		if rapid.Bool().Draw(t, "some") {
			elements(t, v)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "some") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Interface: // an error
		if rapid.Bool().Draw(t, "some") {
			f := &fault.Error{}
			fill(t, reflect.ValueOf(&f.Code).Elem())
			fill(t, reflect.ValueOf(&f.Reason).Elem())
			f.Kind = fault.Kind(rapid.IntRange(1, 255).Draw(t, "kind"))
			v.Set(reflect.ValueOf(f))
		}
	case reflect.Struct:
		for field, f := range v.Fields() {
			if field.IsExported() {
				fill(t, f)
			}
		}
		curb(t, v.Addr().Interface())
	default:
		t.Fatalf("nobody knows how to send a %s", v.Type())
	}
}

func elements(t *rapid.T, v reflect.Value) {
	for i := range v.Len() {
		fill(t, v.Index(i))
	}
}

// curb takes back what does not travel, or is never sent so.
func curb(t *rapid.T, v any) {
	switch v := v.(type) {
	case *shard.DocsRequest:
		v.DeletedConflicts = false
	case *shard.ChangesRequest:
		v.DeletedConflicts = false
	case *view.Request:
		v.Uncounted = false
	case *find.Request:
		v.Parsed = nil
	case *SearchHead:
		v.Hits = nil // they are the rows
	case *OpenRevsManyRequest:
		for i := range v.Docs {
			v.Docs[i].Copy = ""
		}
	case *shard.FilterFunc:
		if v.Name == "" {
			*v = shard.FilterFunc{}
		}
	case *view.Bound:
		if v.Key == nil {
			*v = view.Bound{}
		}
	case *shard.Change:
		if v.Leaves == nil {
			v.Leaves = []doc.Rev{{Pos: 1, ID: "x"}}
		}
	case *view.Batch: // a document is repeated by the rows behind it
		var last *shard.Doc
		for i := range v.Rows {
			r := &v.Rows[i]
			if repeated := r.Repeated; repeated && last != nil {
				r.RepeatDoc(last)
			} else if r.Repeated = false; r.Doc != nil {
				last = r.Doc
			}
		}
	case *find.Batch:
		if !v.Moved {
			v.Last = find.Position{}
		}
	case *shard.EditAttachment: // empty content is content
		if v.Data == nil && rapid.Bool().Draw(t, "empty") {
			v.Data = []byte{}
		}
	case *find.Range: // an empty end is an end
		if v.Hi == nil && rapid.Bool().Draw(t, "empty") {
			v.Hi = []byte{}
		}
	}
}
