package node

import (
	"testing"

	"divan/cluster/meta"
)

// A node whose last administrator was deleted in former times can be given one
// at its start.
func TestLockedNodeOpens(t *testing.T) {
	dir := t.TempDir()
	h := start(t, onDisk(dir))
	h.want("GET", "/_node/_local", "", "200")
	if _, err := h.node.meta.Config.Delete(t.Context(), meta.ConfigChange{Section: "admins", Key: "adm"}); err != nil {
		t.Fatal(err)
	}
	h.end()

	h = start(t, onDisk(dir)) // COUCHDB_USER
	h.want("GET", "/_node/_local", "", "200")
	h.end()

	cfg := onDisk(dir)
	cfg.Environ, cfg.Admin = []string{"DIVAN_CHTTPD_AUTH__ITERATIONS=1"}, "adm:pass"
	h = start(t, cfg)
	h.want("GET", "/_node/_local", "", "200")
	h.want("PUT", "/_node/_local/_config/admins/adm", `"pass"`, "200")
	h.end()

	cfg.Admin = ""
	h = start(t, cfg) // what was set through HTTP lasts
	h.want("GET", "/_node/_local", "", "200")
	h.end()
}
