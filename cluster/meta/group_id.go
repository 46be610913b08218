package meta

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// The group id identifies one founding of a group. Two groups begin their logs
// with entries of the same numbers and terms, so Raft takes one for the other;
// the connections between nodes carry the id and keep them apart. The uuid
// would not do: it may be configured, and a node that has lost its disk would
// found another cluster with the same one. So the id covers the secret too,
// which is made up at each founding and never changes.

// groupIDKey is where the stable store has the id of the group that this node
// is part of. It is written before Raft runs for the first time, so a node that
// has state knows it at once.
func groupIDKey() []byte { return []byte("divan_group_id") }

// identityKey is where the stable store of a founder has the metapb.Init that
// gives its group the identity: the group id must not change when the founder
// dies before the group has agreed on it.
func identityKey() []byte { return []byte("divan_identity") }

func groupIDOf(i *metapb.Init) string {
	mac := hmac.New(sha256.New, []byte(i.Secret))
	mac.Write([]byte("divan cluster " + i.Uuid))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// groupID returns that of the group, empty before it has an identity.
func (s *state) groupID() string {
	if s.uuid == "" {
		return ""
	}
	return groupIDOf(&metapb.Init{Uuid: s.uuid, Secret: s.secret})
}

// storeIdentity writes down which group this node is about to found; uuid is the configured one.
func storeIdentity(s Stores, uuid string) error {
	i := &metapb.Init{Uuid: uuid, Secret: randomHex()}
	if i.Uuid == "" { // else it is of the ini files, when a CouchDB becomes a Divan
		i.Uuid = randomHex()
	}
	if err := s.Stable.Set(identityKey(), encode(i)); err != nil {
		return fmt.Errorf("write down what is founded: %w", err)
	}
	return storeGroupID(s, groupIDOf(i))
}

// storedIdentity returns what storeIdentity has written down.
func storedIdentity(s Stores) (*metapb.Init, error) {
	b, err := s.Stable.Get(identityKey())
	if err != nil {
		return nil, fmt.Errorf("read what is founded: %w", err)
	}
	i := &metapb.Init{}
	if err := i.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: what is founded: %w", errMalformed, err)
	}
	if i.Uuid == "" || i.Secret == "" {
		return nil, fmt.Errorf("%w: what is founded has no identity", errMalformed)
	}
	return i, nil
}

// randomHex returns 32 hexadecimal digits that cannot be guessed.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func storeGroupID(s Stores, id string) error {
	if err := s.Stable.Set(groupIDKey(), []byte(id)); err != nil {
		return fmt.Errorf("write down the id of the group: %w", err)
	}
	return nil
}

// storedGroupID returns what was written down; empty when nothing was, which
// stores report in different ways.
func storedGroupID(s Stores) string {
	b, err := s.Stable.Get(groupIDKey())
	if err != nil {
		return ""
	}
	return string(b)
}

// checkGroupID compares what this node follows with the group that it is part
// of. The error says that it has followed another group, and then the node must
// stop.
func (s *state) checkGroupID(stores Stores) error {
	followed, own := s.groupID(), storedGroupID(stores)
	if followed == "" || followed == own {
		return nil
	}
	return fault.Newf(fault.Corruption, "this node is part of the group %s and was given the metadata of another one, %s: "+
		"stop it, remove its data directory, and have it join again", own, followed)
}
