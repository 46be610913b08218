package meta

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"divan/storage/fault"
)

// The origin of a group identifies its founding. Two groups begin their logs
// with entries of the same numbers and terms, so Raft takes one for the other;
// the connections between nodes carry the origin and keep them apart. The uuid
// would not do: it may be configured, and a node that has lost its disk would
// found another cluster with the same one. So the origin covers the secret too,
// which is made up at each founding and never changes.

// originKey is where the stable store has the origin of the group that this
// node is part of. It is written before Raft runs for the first time, so a node
// that has state knows it at once.
func originKey() []byte { return []byte("divan_origin") }

// foundingKey is where the stable store of a founder has the command that gives
// its group the identity: the origin must not change when the founder dies
// before the group has agreed on it.
func foundingKey() []byte { return []byte("divan_founding") }

func (i initCommand) origin() string {
	mac := hmac.New(sha256.New, []byte(i.secret))
	mac.Write([]byte("divan cluster " + i.uuid))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// origin returns that of the group, empty before it has an identity.
func (s *state) origin() string {
	if s.uuid == "" {
		return ""
	}
	return initCommand{s.uuid, s.secret}.origin()
}

// newIdentity makes the command that gives a new group its identity.
func (m *Meta) newIdentity() *command {
	uuid := m.opts.Config.Load().CouchDB.UUID // of the ini files, when a CouchDB becomes a Divan
	if uuid == "" {
		uuid = randomHex()
	}
	return &command{kind: kindInit, init: initCommand{uuid: uuid, secret: randomHex()}}
}

// noteFounding writes down which group this node is about to found.
func (m *Meta) noteFounding(s Stores) error {
	c := m.newIdentity()
	if err := s.Stable.Set(foundingKey(), c.encode()); err != nil {
		return fmt.Errorf("write down what is founded: %w", err)
	}
	return noteOrigin(s, c.init.origin())
}

// founding returns the command that noteFounding has written down, or a new one
// for a group that was founded by an earlier version.
func (m *Meta) founding() *command {
	if s := m.stores.Load(); s != nil {
		if b, err := s.Stable.Get(foundingKey()); err == nil && len(b) > 0 {
			if c, err := decodeCommand(b); err == nil && c.kind == kindInit {
				return c
			}
		}
	}
	return m.newIdentity()
}

func noteOrigin(s Stores, origin string) error {
	if err := s.Stable.Set(originKey(), []byte(origin)); err != nil {
		return fmt.Errorf("write down the origin of the cluster: %w", err)
	}
	return nil
}

// storedOrigin returns what was written down; empty when nothing was, which
// stores report in different ways.
func storedOrigin(s Stores) string {
	b, err := s.Stable.Get(originKey())
	if err != nil {
		return ""
	}
	return string(b)
}

// belong tells the port which group this node is part of.
func (m *Meta) belong(origin string) {
	if m.opts.Belong != nil {
		m.opts.Belong(origin)
	}
}

// checkOrigin compares what this node follows with the group that it is part
// of, and writes that down where an earlier version did not. The error says
// that it has followed another group, and then the node must stop.
func (m *Meta) checkOrigin(s Stores) error {
	followed, own := m.fsm.load().origin(), storedOrigin(s)
	switch {
	case followed == "" || followed == own:
		return nil
	case own == "":
		m.belong(followed)
		return noteOrigin(s, followed)
	}
	return fault.Newf(fault.Corruption, "this node is part of the cluster of origin %s and was given the metadata of another one, %s: "+
		"stop it, remove its data directory, and have it join again", own, followed)
}
