package query

import (
	"errors"
	"strings"
	"testing"

	"divan/storage/fault"
)

const sample = `{"_id":"m","_rev":"1-x","n":2.5,"fl":2.5,"i":-7,"s":"apple","u":"é","esc":"tab\there","t":[1,"x",[1,2],{"k":1}],` +
	`"nums":[1,2.0],"o":{"p":2,"q":null},"a.b":"dotted","":"empty","x\\y":1,"list":[{"_id":"B"},{"_id":"a"}],"e":[],"z":null,"twice":[{"k":0,"k":[{"l":1,"l":2}]}],"ign":"app\u0001le","ids":[{"_id":["a",{"x":"a"}]}],"n":3}`

// TestMatch holds what the transcripts do not say.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name, selector string
		want           bool
	}{
		{"of members with one name the last counts", `{"n":3,"o.p":2}`, true},
		{"and no other", `{"$or":[{"n":2.5},{"o.p":1}]}`, false},
		{"also when the whole document is searched", `{"n":3,"none":{"$exists":false}}`, true},
		{"a value is compared without the others", `{"o":{"$eq":{"p":2,"q":null}}}`, true},
		{"as a whole", `{"o":{"$eq":{"p":1,"p":2,"q":null}}}`, true},
		{"in order", `{"o":{"$lt":{"p":2,"r":0}}}`, true},
		{"in a set", `{"o":{"$in":[{"p":2,"q":null}]}}`, true},
		{"as a term", `{"twice":{"$all":[{"k":[{"l":2}]}]}}`, true},
		{"and no other as a term", `{"twice":{"$all":[{"k":[{"l":1}]}]}}`, false},
		{"below an element", `{"twice":{"$elemMatch":{"k.0.l":2}}}`, true},
		{"ids that are arrays compare by bytes", `{"ids":{"$elemMatch":{"_id":{"$elemMatch":{"$gt":"Z"}}}}}`, true},
		{"and what is below them", `{"ids":{"$elemMatch":{"_id":{"$elemMatch":{"x":{"$gt":"Z"}}}}}}`, true},
		{"a condition about the document as a value", `{"$and":[{"$keyMapMatch":{"$eq":"nums"}}]}`, true},
		{"sees no fields in its names", `{"$and":[{"$keyMapMatch":{"s":"apple"}}]}`, false},
		{"what ICU ignores may be in the document", `{"ign":"apple"}`, true},
		{"of a name twice in a selector the last counts", `{"n":{"$lt":2},"n":{"$gt":2}}`, true},
		{"and no condition of the first", `{"none":{},"none":{"$and":[]}}`, true},
		{"ids compare by bytes", `{"_id":{"$gt":"Z"}}`, true},
		{"other fields do not", `{"s":{"$lt":"Z"}}`, true},
		{"an id is greater than everything that is no string", `{"_id":{"$gt":{"x":1}}}`, true},
		{"strings are less than objects elsewhere", `{"s":{"$lt":{"x":1}}}`, true},
		{"ids of elements compare by bytes too", `{"list":{"$elemMatch":{"_id":{"$lt":"C","$gt":"A"}}}}`, true},
		{"but not ids on a path", `{"list.0._id":{"$gt":"a"}}`, true},
		{"equal to ICU is equal", `{"s":"app\u0001le"}`, true},
		{"save for ids", `{"_id":"m\u0001"}`, false},
		{"$in as well", `{"s":{"$in":["app\u0001le"]}}`, true},
		{"a bare value too", `{"twice":[{"k":0,"k":[{"l":2}]}]}`, true},
		{"$all compares terms", `{"t":{"$all":[1.0]}}`, false},
		{"a single array in $all is compared as a number is", `{"nums":{"$all":[[1.0,2]]}}`, true},
		{"and must be that array", `{"nums":{"$all":[[1,2,3]]}}`, false},
		{"or an element", `{"t":{"$all":[[1,2]]}}`, true},
		{"which must be the same term", `{"t":{"$all":[[1,2.0]]}}`, false},
		{"$all is not for other values", `{"s":{"$all":["apple"]}}`, false},
		{"not $all of nothing is everything that is there", `{"s":{"$not":{"$all":[]}}}`, true},
		{"but not what is missing", `{"none":{"$not":{"$all":[]}}}`, false},
		{"a negation within $elemMatch holds for what lacks the field", `{"t":{"$elemMatch":{"$not":{"k":1}}}}`, true},
		{"also for all", `{"list":{"$allMatch":{"$nor":[{"k":1}]}}}`, true},
		{"an empty $or holds", `{"$or":[],"n":3}`, true},
		{"an empty $or negated holds too", `{"$not":{"$or":[]},"n":3}`, true},
		{"an empty $nor holds", `{"$nor":[],"n":3}`, true},
		{"a bare value in a list is the document", `{"$and":[1]}`, false},
		{"an object in a field beside an operator", `{"o":{"p":2,"$exists":true}}`, true},
		{"a nested empty object is a value", `{"o":{}}`, false},
		{"a name of nothing in front is no name", `{"":{"n":3}}`, true},
		{"a backslash alone names the empty member", `{"\\":"empty"}`, true},
		{"backslashes vanish", `{"x\\y":1}`, false},
		{"and cannot be named", `{"x\\\\y":1}`, false},
		{"a path is put together before it is split", `{"a\\":{"b":"dotted"}}`, true},
		{"a signed index", `{"t.+1":"x"}`, true},
		{"a negative index", `{"t.-1":{"$exists":true}}`, false},
		{"a path through null", `{"z.a":{"$exists":false}}`, false},
		{"missing below an object", `{"o.x.y":{"$exists":false}}`, true},
		{"$exists of null", `{"z":{"$exists":true}}`, true},
		{"$gt null is not null", `{"z":{"$gt":null}}`, false},
		{"$gte null is", `{"z":{"$gte":null}}`, true},
		{"$mod by a negative number", `{"i":{"$mod":[-3,-1]}}`, true},
		{"$mod of a float", `{"fl":{"$mod":[1,0]}}`, false},
		{"$size of no array", `{"s":{"$size":5}}`, false},
		{"$size beyond all", `{"e":{"$size":99999999999999999999}}`, false},
		{"$beginsWith with an escape", `{"esc":{"$beginsWith":"tab\t"}}`, true},
		{"$beginsWith of the whole", `{"u":{"$beginsWith":"é"}}`, true},
		{"$beginsWith longer than the value", `{"s":{"$beginsWith":"apples"}}`, false},
		{"a dot is a character", `{"u":{"$regex":"^.$"}}`, true},
		{"regex sees what is escaped", `{"esc":{"$regex":"\\th"}}`, true},
		{"$keyMapMatch of a name that occurs twice", `{"o":{"$keyMapMatch":{"$eq":"p"}}}`, true},
		{"$keyMapMatch of no object", `{"t":{"$keyMapMatch":{"$exists":true}}}`, false},
		{"$allMatch of nothing", `{"e":{"$allMatch":{"$exists":true}}}`, false},
		{"$elemMatch with an empty selector is an empty object", `{"t":{"$elemMatch":{}}}`, false},
		{"a text index is believed", `{"$text":"x"}`, true},
		{"as is its own field", `{"$default":{"$text":"x"},"n":3}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse([]byte(c.selector))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.matches([]byte(sample)); got != c.want {
				t.Errorf("%s: %v, normal form %s", c.selector, got, normalText(s))
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)
	for _, c := range []struct{ selector, code, reason string }{
		{`5`, "invalid_selector_json", "Selector must be a JSON object, not: 5"},
		{`{"$eq":1}`, "invalid_selector", "One or more conditions is missing a field name."},
		{`{"$not":{}}`, "invalid_selector", "One or more conditions is missing a field name."},
		{`{"$elemMatch":{"a":1}}`, "invalid_selector", "One or more conditions is missing a field name."},
		{`{"a":{"b":{"":1}}}`, "invalid_field_name", "Invalid field name: a.b."},
		{`{"a..b":1}`, "invalid_field_name", "Invalid field name: a..b"},
		{`{".a":1}`, "invalid_field_name", "Invalid field name: .a"},
		{`{"a":{"$not":5}}`, "bad_arg", "Bad argument for operator $not: 5"},
		{`{"a":{"$mod":[0,1]}}`, "bad_arg", "Bad argument for operator $mod: [0,1]"},
		{`{"a":{"$mod":[1,2,3]}}`, "bad_arg", "Bad argument for operator $mod: [1,2,3]"},
		{`{"a":{"$mod":[-0,1]}}`, "bad_arg", "Bad argument for operator $mod: [0,1]"},
		{`{"a":{"$mod":[1` + strings.Repeat("0", maxDivisor) + `,1]}}`, "bad_arg", "Bad argument for operator $mod: the divisor has more than 4096 digits"},
		{`{"a":{"$size":2.0}}`, "bad_arg", "Bad argument for operator $size: 2.0"},
		{`{"a":{"$exists":null}}`, "bad_arg", "Bad argument for operator $exists: null"},
		{`{"$text":{}}`, "bad_arg", "Bad argument for operator $text: {[]}"},
		{`{"$not":{"$text":"x"}}`, "bad_arg", "Bad argument for operator $not: {[{<<36,100,101,102,97,117,108,116>>,{[{<<36,116,101,120,116>>,<<120>>}]}}]}"},
		{`{"a":{"$text":"x"}}`, "bad_field", "Invalid field normalization on selector: {[{<<36,100,101,102,97,117,108,116>>,{[{<<36,116,101,120,116>>,<<120>>}]}}]}"},
		{`{"$default":1}`, "bad_field", "Invalid field normalization on selector: {[{<<36,100,101,102,97,117,108,116>>,1}]}"},
		{`{"a":[{"$foo":1}],"$bar":1}`, "invalid_operator", "Invalid operator: $bar"},
		{`{"$geoWithin":{}}`, "not_supported", "Unsupported operator: $geoWithin"},
		{`{"a":{"$regex":"` + strings.Repeat("a", maxPattern+1) + `"}}`, "bad_arg", "Bad argument for operator $regex: it is longer than 4096 bytes"},
		{deep, "invalid_selector", "The selector is nested more than 400 levels deep."},
	} {
		_, err := Parse([]byte(c.selector))
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.InvalidSelector || f.Code != c.code || f.Reason != c.reason {
			t.Errorf("%.80s: %#v, want %s %q", c.selector, err, c.code, c.reason)
		}
	}
	for _, text := range []string{``, `{`, `{"a":}`, `{} {}`, "{\"a\":\"\xff\"}"} {
		if _, err := Parse([]byte(text)); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v, want no JSON", text, err)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, c := range []struct {
		open, end string
		levels    int
	}{
		{`{"a":`, "}", maxDepth - 1},
		{`{"$not":`, "}", maxDepth - 1},
		{`{"$or":[{"a":2},`, "]}", maxDepth - 1},
		{`{"a":{"$elemMatch":`, "}}", maxDepth/2 - 1},
	} {
		s, err := Parse([]byte(strings.Repeat(c.open, c.levels) + `{"a":1}` + strings.Repeat(c.end, c.levels)))
		if err != nil {
			t.Errorf("%s %d times: %v", c.open, c.levels, err)
			continue
		}
		s.matches([]byte(sample))
	}
	// The argument of an operator may be as deep as any document.
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	s, err := Parse([]byte(`{"a":` + deep + `}`))
	if err != nil || !s.matches([]byte(`{"a":`+deep+`}`)) {
		t.Errorf("a deep value: %v", err)
	}
}

func TestNothing(t *testing.T) {
	for selector, want := range map[string]bool{
		`{"$and":[]}`: true, `{"$or":[]}`: true, `{"$nor":[]}`: true, `{"$not":{"$or":[]}}`: true,
		`{}`: false, `{"$or":[],"a":1}`: false, `{"$and":[{"$or":[]}]}`: false, `{"a":{"$in":[]}}`: false,
	} {
		s, err := Parse([]byte(selector))
		if err != nil {
			t.Fatal(err)
		}
		if s.Nothing() != want {
			t.Errorf("%s: %v, want %v", selector, s.Nothing(), want)
		}
	}
}

func TestMatchOfNoDocument(t *testing.T) {
	s, err := Parse([]byte(`{"a":{"$exists":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[]", "null", `"a"`, "5"} {
		if s.matches([]byte(text)) {
			t.Errorf("%q matches", text)
		}
	}
	if !s.matches([]byte("{}")) {
		t.Error("{} does not match")
	}
}

func TestManyFields(t *testing.T) {
	var selector, document strings.Builder
	for i := range 3 * inlineSlots {
		name := string(rune('a'+i%26)) + strings.Repeat("x", i)
		selector.WriteString(`,"` + name + `":{"$exists":true}`)
		document.WriteString(`,"` + name + `":1`)
	}
	s, err := Parse([]byte("{" + selector.String()[1:] + "}"))
	if err != nil {
		t.Fatal(err)
	}
	full := "{" + document.String()[1:] + "}"
	if !s.matches([]byte(full)) {
		t.Error("the document with all fields does not match")
	}
	if s.matches([]byte(strings.Replace(full, `"b`, `"y`, 1))) {
		t.Error("a document that lacks one matches")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	for _, selector := range []string{
		`{"n":3,"s":"apple"}`, `{"s":{"$gt":"a","$lt":"b"},"n":{"$lte":3}}`, `{"u":"é"}`, `{"t":{"$elemMatch":{"k":1}}}`,
		`{"s":{"$in":["apple","pear"]},"n":{"$nin":[1,2]}}`, `{"s":{"$regex":"^a"}}`, `{"$or":[{"o.p":2},{"none":null}]}`,
	} {
		s, err := Parse([]byte(selector))
		if err != nil {
			t.Fatal(err)
		}
		document := []byte(sample)
		w := NewWork(t.Context(), nil)
		if n := testing.AllocsPerRun(100, func() {
			if ok, err := s.Match(w, document); !ok || err != nil {
				t.Fatal("no match", err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", selector, n)
		}
	}
}
