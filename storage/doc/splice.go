package doc

// Splice is a stored revision on its way to a client.
type Splice struct {
	ID      string
	Rev     Rev
	Deleted bool
	Body    []byte // canonical object text without underscore members; empty counts as "{}"
}

// AppendHead appends the text of the document without its closing brace:
//
//	{"_id":"…","_rev":"…",<members of the body>[,"_deleted":true]
//
// so that the caller can go on with further underscore members, each led by a
// comma. The body is copied, not parsed.
func AppendHead(dst []byte, s Splice) []byte {
	dst = append(dst, `{"_id":`...)
	dst = AppendString(dst, s.ID)
	dst = append(dst, `,"_rev":`...)
	dst = s.Rev.AppendJSON(dst)
	if len(s.Body) > len("{}") {
		dst = append(dst, ',')
		dst = append(dst, s.Body[1:len(s.Body)-1]...)
	}
	if s.Deleted {
		dst = append(dst, `,"_deleted":true`...)
	}
	return dst
}
