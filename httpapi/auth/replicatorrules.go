package auth

import (
	"net/url"
	"strings"

	"divan/shard"
	"divan/storage/doc"
)

// replicatorDatabase holds documents that describe replications; so does a database
// whose name ends in it.
const replicatorDatabase = "_replicator"

// IsReplicatorDatabase reports whether documents of a database describe replications.
func IsReplicatorDatabase(db string) bool {
	return db == replicatorDatabase || strings.HasSuffix(db, "/"+replicatorDatabase)
}

// ValidateReplication decides whether an edit of a document that describes a
// replication may be written (semantics.md section 11.3, golden replication/10). It
// is not asked about design and local documents.
func ValidateReplication(r shard.ValidateRequest) error {
	d := r.New
	if d.Deleted {
		return nil
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
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return invalid
	}
	return nil
}

// checkTogether refuses members that exclude each other.
func checkTogether(member func(name string) []byte) error {
	chosen := 0
	for _, name := range []string{"filter", "selector", "doc_ids"} {
		if value := member(name); value != nil && string(value) != "null" {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return forbidden("`doc_ids`, `filter` and `selector` are mutually exclusive")
	case member("proxy") != nil && (member("source_proxy") != nil || member("target_proxy") != nil):
		return forbidden("`proxy` is mutually exclusive with `source_proxy` and `target_proxy`")
	}
	return nil
}
