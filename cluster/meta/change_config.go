package meta

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta/metapb"
	"divan/storage/fault"
	"divan/storage/pause"
)

// ConfigChange names a key of the configuration and what it is to be.
type ConfigChange struct {
	Section, Key, Value string
	Volatile            bool // in the memory of this node only, until the next reload (X-Couch-Persist: false)
	ClusterWide         bool // for all nodes, not for this one only; some keys are shared in any case, see config.Shared
}

// SetConfig sets a key and returns the text it had before, empty when it was
// not set. Values of section admins are hashed before they go anywhere. The
// refusals are those of config.Check, and fault.RequestTooLarge above 64 KB.
func (m *Meta) SetConfig(ctx context.Context, c ConfigChange) (old string, err error) {
	c.Value = strings.TrimSpace(c.Value)
	if len(c.Section)+len(c.Key)+len(c.Value) > maxSetting {
		return "", errTooLarge()
	}
	if err := config.Check(c.Section, c.Key, c.Value); err != nil {
		return "", err
	}
	if c.Value, err = m.opts.Config.StoredForm(c.Section, c.Value); err != nil {
		return "", err
	}
	done, err := pause.Turn(ctx, m.configTurn)
	if err != nil {
		return "", errUnavailable(err)
	}
	defer done()
	old, _ = m.opts.Config.Load().Get(c.Section, c.Key)
	if c.Volatile {
		m.opts.Config.SetVolatile(c.Section, c.Key, c.Value)
	} else if err := m.writeConfig(ctx, c, metapb.ConfigChange_SET); err != nil {
		return "", err
	}
	m.logConfig("configuration set", c)
	return old, nil
}

// DeleteConfig makes a key unset and returns the text it had. A key that the
// ini files or the built-in defaults set is hidden. fault.NotFound when it is
// not set.
func (m *Meta) DeleteConfig(ctx context.Context, c ConfigChange) (old string, err error) {
	if err := config.CheckName(c.Section, c.Key); err != nil {
		return "", err
	}
	done, err := pause.Turn(ctx, m.configTurn)
	if err != nil {
		return "", errUnavailable(err)
	}
	defer done()
	old, ok := m.opts.Config.Load().Get(c.Section, c.Key)
	if !ok {
		return "", fault.New(fault.NotFound, "unknown_config_value")
	}
	if c.Volatile {
		m.opts.Config.HideVolatile(c.Section, c.Key)
	} else if err := m.writeConfig(ctx, c, metapb.ConfigChange_UNSET); err != nil {
		return "", err
	}
	c.Value = ""
	m.logConfig("configuration deleted", c)
	return old, nil
}

// writeConfig writes to the layer that the key belongs to, and clears away
// what would hide the result in a stronger one.
func (m *Meta) writeConfig(ctx context.Context, c ConfigChange, op metapb.ConfigChange_Op) error {
	level, node := config.Node, m.Self()
	if c.ClusterWide || config.Shared(c.Section, c.Key) {
		level, node = config.ClusterWide, ""
	}
	if op == metapb.ConfigChange_UNSET && m.opts.Config.SetBelow(level, c.Section, c.Key) {
		op = metapb.ConfigChange_HIDE
	}
	change := &metapb.ConfigChange{Op: op, Node: node, Section: c.Section, Key: c.Key}
	if op == metapb.ConfigChange_SET {
		change.Value = c.Value
	}
	if _, err := m.propose(ctx, changeConfigCommand(change)); err != nil {
		return err
	}
	if own := m.fsm.load().perNode[m.Self()]; level == config.ClusterWide && own.Has(c.Section, c.Key) {
		unset := &metapb.ConfigChange{Op: metapb.ConfigChange_UNSET, Node: m.Self(), Section: c.Section, Key: c.Key}
		if _, err := m.propose(ctx, changeConfigCommand(unset)); err != nil {
			return err
		}
	}
	m.opts.Config.DropVolatile(c.Section, c.Key)
	return nil
}

func changeConfigCommand(c *metapb.ConfigChange) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_ChangeConfig{ChangeConfig: c}}
}

func (m *Meta) logConfig(msg string, c ConfigChange) {
	value := c.Value
	if config.Sensitive(c.Section, c.Key) {
		value = "****"
	}
	m.log.Info(msg, zap.String("section", c.Section), zap.String("key", c.Key), zap.String("value", value),
		zap.Bool("volatile", c.Volatile))
}

// ReloadConfig reads the ini files of this node again and forgets volatile
// values.
func (m *Meta) ReloadConfig(ctx context.Context) error {
	done, err := pause.Turn(ctx, m.configTurn)
	if err != nil {
		return errUnavailable(err)
	}
	defer done()
	if err := m.opts.Config.Reload(); err != nil {
		return err
	}
	if m.raft.Load() == nil {
		return errUnavailable(nil)
	}
	return m.storeAdminHashes(ctx)
}

// adminHashSection keeps the stored forms of the passwords that this node's ini
// files and environment give in plain text. Its name is one that no ini file
// or request can spell.
const adminHashSection = "\x00admins"

// storeAdminHashes hashes plain-text administrators and keeps what it made, so
// that the salts, and with them sessions, outlive a restart.
func (m *Meta) storeAdminHashes(ctx context.Context) error {
	known := m.fsm.load().perNode[m.Self()].Set[adminHashSection]
	fresh, err := m.opts.Config.HashAdmins(known)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	for name, stored := range fresh {
		c := &metapb.ConfigChange{Op: metapb.ConfigChange_SET, Node: m.Self(), Section: adminHashSection, Key: name, Value: stored}
		if _, err := m.submit(ctx, changeConfigCommand(c)); err != nil {
			return err
		}
	}
	return nil
}
