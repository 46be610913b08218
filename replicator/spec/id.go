package spec

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"divan/storage/doc"
)

// IDVersion is replication_id_version: the way ids are made, CouchDB's fourth.
const IDVersion = 4

// ID names a replication. Base names its checkpoints.
type ID struct {
	Base string // 32 hexadecimal digits
	Ext  string // "", "+continuous", "+create_target" or both in this order
}

// String returns the whole id.
func (id ID) String() string { return id.Base + id.Ext }

// ID returns the id of what is asked: it depends on the server, on both sides
// (the account, but not its password), on what selects documents, and on where it
// begins: its checkpoints say nothing of what is before that.
// filterCode is the text of the function that Filter.Function names.
func (s *Spec) ID(serverUUID, filterCode string) ID {
	text := doc.AppendString(nil, serverUUID)
	text = s.Source.appendID(text, s.User.Name)
	text = s.Target.appendID(text, s.User.Name)
	text = s.appendFilterID(text, filterCode)
	if s.WinnerOnly {
		text = append(text, "winning_revs_only"...)
	}
	if s.Since != "" {
		text = appendTexts(append(text, "since_seq"...), string(s.Since))
	}
	sum := md5.Sum(text)
	id := ID{Base: hex.EncodeToString(sum[:])}
	if s.Continuous {
		id.Ext = "+continuous"
	}
	if s.CreateTarget {
		id.Ext += "+create_target"
	}
	return id
}

// appendFilterID appends what selects documents.
func (s *Spec) appendFilterID(text []byte, code string) []byte {
	f := &s.Filter
	switch {
	case f.HasIDs:
		text = appendTexts(append(text, "doc_ids"...), f.DocIDs...)
	case f.Selector != nil:
		text = append(append(text, "selector"...), sorted(f.Selector)...)
	case f.Function != "":
		if code == "" {
			code = f.Function // a built-in one
		}
		text = appendTexts(append(text, "filter"...), strings.TrimSpace(code))
		for _, q := range f.Query {
			text = appendTexts(text, q[0], q[1])
		}
	}
	return text
}

// sorted returns a JSON value with the members of all objects in the order of
// their names: clients do not always send an object in the same order, and a
// selector means the same in any.
func sorted(value []byte) []byte {
	var v any
	from := json.NewDecoder(bytes.NewReader(value))
	from.UseNumber()
	if err := from.Decode(&v); err != nil {
		return value
	}
	text, err := json.Marshal(v)
	if err != nil {
		return value
	}
	return text
}

// appendID appends the identity of a side.
func (a *Address) appendID(text []byte, caller string) []byte {
	if a.Name != "" {
		return appendTexts(append(text, "local"...), a.Name, caller)
	}
	user, headers := a.Username, make([][2]string, 0, len(a.Headers))
	for _, h := range a.Headers {
		h[0] = strings.ToLower(h[0])
		if name, ok := basicUser(h); ok {
			if user == "" {
				user = name
			}
			continue
		}
		headers = append(headers, h)
	}
	slices.SortFunc(headers, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	host, port, path := a.URL, "", ""
	if u, err := url.Parse(a.URL); err == nil {
		host, port, path = u.Hostname(), u.Port(), u.EscapedPath()
		if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
			port = ""
		}
	}
	text = appendTexts(append(text, "remote"...), user, strings.ToLower(host), port, path)
	text = strconv.AppendInt(text, int64(len(headers)), 10)
	for _, h := range headers {
		text = appendTexts(text, h[0], h[1])
	}
	return text
}

// Same reports whether two replications with one ID do the same with the same
// rights: also the passwords and the proxies are equal, which are no part of an
// ID. Settings that make one faster or slower do not count.
func (s *Spec) Same(o *Spec) bool {
	return s.User.Name == o.User.Name && s.User.Anonymous == o.User.Anonymous &&
		s.Source.same(&o.Source) && s.Target.same(&o.Target) && slices.Equal(s.CreateParams.Query, o.CreateParams.Query)
}

func (a *Address) same(o *Address) bool {
	return a.URL == o.URL && a.Name == o.Name && a.Username == o.Username && a.Password == o.Password && a.Proxy == o.Proxy && slices.Equal(a.Headers, o.Headers)
}

// basicUser returns the account of a header with basic credentials.
func basicUser(h [2]string) (name string, ok bool) {
	kind, secret, ok := strings.Cut(h[1], " ")
	if h[0] != "authorization" || !ok || !strings.EqualFold(kind, "basic") {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil {
		return "", false
	}
	name, _, ok = strings.Cut(string(plain), ":")
	return name, ok
}

// appendTexts appends strings so that their borders are part of the text.
func appendTexts(text []byte, all ...string) []byte {
	for _, s := range all {
		text = doc.AppendString(text, s)
	}
	return text
}
