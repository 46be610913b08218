package auth

import (
	"slices"
	"strings"

	"divan/cluster/access"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
)

// ValidateReplication decides whether an edit of a document that describes a
// replication may be written (semantics.md section 11.3, golden replication/10). It
// is not asked about design and local documents.
func ValidateReplication(r shard.ValidateRequest) error {
	d := r.New
	if err := keepsOwner(r); err != nil || d.Deleted {
		return err
	}
	member := func(name string) []byte { return doc.Lookup(d.Body, name) }
	if state, _ := doc.Unquote(member("_replication_state")); state == "failed" {
		return nil // it is final, and only tells what was wrong
	}
	if member("source") == nil || member("target") == nil {
		return forbidden("Missing replicator database")
	}
	for _, name := range []string{"source", "target"} {
		if err := checkEndpoint(member(name)); err != nil {
			return err
		}
	}
	for _, f := range replicationFields() {
		if value := member(f.name); value != nil && string(value) != "null" && strings.IndexByte(f.begins, value[0]) < 0 {
			return forbidden("`" + f.name + "` must be " + f.kind)
		}
	}
	return checkTogether(member)
}

// replicationField says of which type a member has to be.
type replicationField struct {
	name, kind string
	begins     string // first bytes of such values
}

func replicationFields() []replicationField {
	boolean := func(name string) replicationField { return replicationField{name, "a boolean", "tf"} }
	object := func(name string) replicationField { return replicationField{name, "an object", "{"} }
	return []replicationField{
		boolean("continuous"), boolean("create_target"), boolean("winning_revs_only"), boolean("use_checkpoints"), boolean("cancel"),
		object("create_target_params"), object("selector"), object("query_params"),
		{"doc_ids", "an array", "["},
		{"filter", "a string", `"`},
	}
}

// checkEndpoint checks the address of a database: a URL, or an object with one.
func checkEndpoint(value []byte) error {
	invalid := forbidden("endpoint has an invalid url")
	text, isText := doc.Unquote(value)
	if !isText {
		if !doc.IsObject(value) {
			return forbidden("endpoint must be a string or an object")
		}
		if text, isText = doc.Unquote(doc.Lookup(value, "url")); !isText {
			return invalid
		}
	}
	if !strings.Contains(text, "://") {
		return forbidden("local_endpoints_not_supported")
	}
	u, err := spec.ParseURL(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return invalid
	}
	return nil
}

// checkTogether refuses members that exclude each other.
func checkTogether(member func(name string) []byte) error {
	given := func(name string) bool { value := member(name); return value != nil && string(value) != "null" }
	chosen := 0
	for _, name := range []string{"filter", "selector", "doc_ids"} {
		if given(name) {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return forbidden("`doc_ids`, `filter` and `selector` are mutually exclusive")
	case given("proxy") && (given("source_proxy") || given("target_proxy")):
		return forbidden("`proxy` is mutually exclusive with `source_proxy` and `target_proxy`")
	}
	return nil
}

// replicatorRole is that of the server when it writes states.
const replicatorRole = "_replicator"

// textOthers refuses an edit of another user's document.
const textOthers = "Can't update replication documents from other users."

// ownerOf returns the member owner; false when it is no string.
func ownerOf(body []byte) (string, bool) { return doc.Unquote(doc.Lookup(body, "owner")) }

// keepsOwner refuses an edit of another user's document.
func keepsOwner(r shard.ValidateRequest) error {
	if r.Old == nil || r.User.Admin() || slices.Contains(r.User.Roles, replicatorRole) {
		return nil
	}
	owner, owned := ownerOf(r.Old.Body)
	if !owned || !r.User.Anonymous && owner == r.User.Name || access.Parse(r.Security).Admin(r.User) {
		return nil
	}
	return forbidden(textOthers)
}

// ReplicationWrite is one interactive edit of a replicator database before it is
// made. It is not for design and local documents.
type ReplicationWrite struct {
	Deleted bool
	Body    []byte // canonical JSON object without underscore members
	User    shard.User
	Admin   bool // User is admin of the server or of the database
}

// Prepare returns the body to store: with its author as owner. Only
// administrators write documents of other owners.
func (w ReplicationWrite) Prepare() ([]byte, error) {
	if err := ValidateReplication(shard.ValidateRequest{New: &shard.Doc{Deleted: w.Deleted, Body: w.Body}}); err != nil {
		return nil, err
	}
	owner, owned := ownerOf(w.Body)
	switch {
	case owned && (w.Admin || !w.User.Anonymous && owner == w.User.Name):
		return w.Body, nil
	case owned:
		return nil, forbidden(textOthers)
	case w.User.Anonymous || w.Deleted:
		return w.Body, nil
	}
	out := append(make([]byte, 0, len(w.Body)+64), '{')
	err := doc.EachMember(w.Body, func(name string, value []byte) error {
		if name != "owner" {
			out = appendMember(out, name, value)
		}
		return nil
	})
	out = appendMember(out, "owner", doc.AppendString(nil, w.User.Name))
	return closeObject(out), err
}

// ScreenReplication takes from a document of a replicator database what only its
// owner and administrators may see: credentials. Such a document cannot be
// written back, so it has a revision that does not exist.
func ScreenReplication(d *shard.Doc, u shard.User, admin bool) error {
	owner, owned := ownerOf(d.Body)
	if admin || owned && !u.Anonymous && owner == u.Name || strings.HasPrefix(d.ID, doc.DesignPrefix) || doc.IsLocal(d.ID) {
		return nil
	}
	out := append(make([]byte, 0, len(d.Body)), '{')
	err := doc.EachMember(d.Body, func(name string, value []byte) error {
		switch name {
		case "source", "target", "proxy", "source_proxy", "target_proxy":
			value = withoutCredentials(value)
		}
		out = appendMember(out, name, value)
		return nil
	})
	if err != nil {
		return err
	}
	d.Body = closeObject(out)
	d.Rev.ID = doc.NewRevID(d.Deleted, d.Rev, d.Body, d.Atts)
	if len(d.Revisions.IDs) > 0 {
		d.Revisions.IDs = append([]string{d.Rev.ID}, d.Revisions.IDs[1:]...)
	}
	return nil
}

// withoutCredentials takes the account out of an address.
func withoutCredentials(value []byte) []byte {
	if text, ok := doc.Unquote(value); ok {
		return doc.AppendString(nil, withoutAccount(text))
	}
	if !doc.IsObject(value) {
		return value
	}
	out := []byte{'{'}
	_ = doc.EachMember(value, func(name string, value []byte) error { // what is stored is well-formed
		switch name {
		case "headers", "auth":
			return nil
		case "url":
			value = withoutCredentials(value)
		}
		out = appendMember(out, name, value)
		return nil
	})
	return closeObject(out)
}

// withoutAccount takes name and password out of a URL. What is before an @ of
// something that is no URL goes as well.
func withoutAccount(text string) string {
	u, err := spec.ParseURL(text)
	if err != nil || u.Host == "" {
		return text[strings.LastIndexByte(text, '@')+1:]
	}
	if u.User == nil {
		return text
	}
	u.User = nil
	return u.String()
}
