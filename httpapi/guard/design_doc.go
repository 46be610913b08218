package guard

import (
	"strings"

	"divan/shard/script"
	"divan/shard/view/reduce"
	"divan/storage/doc"
	"divan/storage/fault"
)

// ddocField says of which types a member of a design document may be. Its path
// is made of names; "*" stands for every member.
type ddocField struct {
	path  string
	types string // letters of types: typeArray and so on
}

// The letters of the types a design document's member may have to be of, in
// the order in which CouchDB names them.
const (
	typeArray   = "a"
	typeBoolean = "b"
	typeString  = "s"
	typeObject  = "o"
)

// ddocFields are the checks in CouchDB's order; the first that fails is told.
func ddocFields(language string) []ddocField {
	mapType := typeString
	if language == "query" {
		mapType = typeObject
	}
	return []ddocField{
		{"filters", typeObject},
		{"filters.*", typeString + typeObject},
		{"language", typeString},
		{"lists", typeObject},
		{"lists.*", typeString + typeObject},
		{"options", typeObject},
		{"options.include_design", typeBoolean},
		{"options.local_seq", typeBoolean},
		{"options.partitioned", typeBoolean},
		{"rewrites", typeArray + typeString},
		{"shows", typeObject},
		{"shows.*", typeString + typeObject},
		{"updates", typeObject},
		{"updates.*", typeString + typeObject},
		{"validate_doc_update", typeString},
		{"views", typeObject},
		{"views.lib", typeObject},
		{"views.*", typeObject},
		{"views.*.map", mapType},
		{"views.*.reduce", typeString},
	}
}

// CheckDesignDoc checks the structure of a design document (api.md 9.6), and that the
// map and reduce functions compile, which compiles tells of a source; others are found
// out when they are called.
func CheckDesignDoc(compiles func(source string) error, body []byte, partitioned bool) error {
	language, _ := doc.Unquote(doc.Lookup(body, "language"))
	for _, f := range ddocFields(language) {
		if err := f.check(body, "", f.path); err != nil {
			return err
		}
	}
	if string(doc.Lookup(doc.Lookup(body, "options"), "partitioned")) == "true" && !partitioned {
		return invalidDesignDoc("partitioned option cannot be true in a non-partitioned database.")
	}
	return eachMember(doc.Lookup(body, "views"), func(name string, view []byte) error {
		if name == "lib" {
			return nil
		}
		if doc.Lookup(view, "map") == nil {
			return invalidDesignDoc("View `" + name + "` must contain map function")
		}
		if language == "" || script.Speaks(language) || language == "erlang" {
			return checkView(compiles, language, name, view)
		}
		return nil
	})
}

// checkView checks the functions of a view.
func checkView(compiles func(source string) error, language, name string, view []byte) error {
	compile := func(kind, source string) error {
		if language == "erlang" {
			return nil
		}
		err := compiles(source)
		if fault.Is(err, fault.CompilationError) {
			return fault.Newf(fault.CompilationError, "Compilation of the %s function in the '%s' view failed: %s", kind, name, fault.Reason(err))
		}
		return err
	}
	source, _ := doc.Unquote(doc.Lookup(view, "map"))
	if err := compile("map", source); err != nil {
		return err
	}
	text := doc.Lookup(view, "reduce")
	if text == nil {
		return nil
	}
	source, _ = doc.Unquote(text)
	if builtin, err := reduce.Builtin(source); builtin != nil || err != nil {
		return err
	}
	return compile("reduce", source)
}

func invalidDesignDoc(reason string) error { return fault.New(fault.InvalidDesignDoc, reason) }

// eachMember is doc.EachMember for a part of a document, which may be missing.
func eachMember(object []byte, fn func(name string, value []byte) error) error {
	if !doc.IsObject(object) {
		return nil
	}
	return doc.EachMember(object, fn)
}

// check checks what rest of the path is left below value, the member that at
// names.
func (f ddocField) check(value []byte, at, rest string) error {
	if rest == "" {
		if value == nil || strings.Contains(f.types, jsonType(value)) {
			return nil
		}
		return invalidDesignDoc("`" + at + "` field must have " + f.typeNames() + " type")
	}
	name, rest, _ := strings.Cut(rest, ".")
	return eachMember(value, func(member string, v []byte) error {
		if name != "*" && name != member {
			return nil
		}
		if at != "" {
			member = at + "." + member
		}
		return f.check(v, member, rest)
	})
}

// jsonType returns the letter of a value's type.
func jsonType(value []byte) string {
	switch value[0] {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	}
	return "?"
}

// typeNames names the types of a field for the refusal.
func (f ddocField) typeNames() string {
	var names []string
	for _, letter := range f.types {
		switch string(letter) {
		case typeArray:
			names = append(names, "array")
		case typeBoolean:
			names = append(names, "boolean")
		case typeString:
			names = append(names, "string")
		case typeObject:
			names = append(names, "object")
		}
	}
	return strings.Join(names, " or ")
}
