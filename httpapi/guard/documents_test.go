package guard

import (
	"testing"

	"divan/cluster/meta"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// The owner of a replication is compared with the revision before; with
// new_edits=false the client says which that is.
func TestReplicatedReplicationsAreForAdmins(t *testing.T) {
	r := Rights{Guard: &Guard{}, User: shard.User{Name: "rosa"}, DB: &meta.Database{Name: "team/_replicator"}}
	edit := shard.Edit{ID: "job", Path: doc.Path{Start: 9, IDs: []string{"x"}}, Body: []byte(`{"owner":"ada"}`)}
	if err := r.prepareReplication(&edit); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a member: %v", err)
	}
	r.User.Roles = []string{shard.AdminRole}
	if err := r.prepareReplication(&edit); err != nil {
		t.Errorf("an administrator: %v", err)
	}
}
