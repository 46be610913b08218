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

// Configuration is the replicated layers of the settings, as clients change them.
type Configuration struct {
	group    *Group
	fsm      *stateMachine
	proposer *proposer
	settings *config.Holder
	turn     chan struct{} // has space for one (pause.Turn), a change made on this node; held while Raft works
	log      *zap.Logger
}

// Set sets a key and returns the text it had before, empty when it was
// not set. Values of section admins are hashed before they go anywhere. The
// refusals are those of config.Check, and fault.RequestTooLarge above 64 KB.
func (f *Configuration) Set(ctx context.Context, c ConfigChange) (old string, err error) {
	c.Value = strings.TrimSpace(c.Value)
	if len(c.Section)+len(c.Key)+len(c.Value) > maxSetting {
		return "", errTooLarge()
	}
	if err := config.Check(c.Section, c.Key, c.Value); err != nil {
		return "", err
	}
	if c.Value, err = f.settings.StoredForm(c.Section, c.Value); err != nil {
		return "", err
	}
	done, err := pause.Turn(ctx, f.turn)
	if err != nil {
		return "", errUnavailable(err)
	}
	defer done()
	old, _ = f.settings.Load().Get(c.Section, c.Key)
	if c.Volatile {
		f.settings.SetVolatile(c.Section, c.Key, c.Value)
	} else if err := f.write(ctx, c, metapb.ConfigChange_SET); err != nil {
		return "", err
	}
	f.logChange("configuration set", c)
	return old, nil
}

// Delete makes a key unset and returns the text it had. A key that the
// ini files or the built-in defaults set is hidden. fault.NotFound when it is
// not set.
func (f *Configuration) Delete(ctx context.Context, c ConfigChange) (old string, err error) {
	if err := config.CheckName(c.Section, c.Key); err != nil {
		return "", err
	}
	done, err := pause.Turn(ctx, f.turn)
	if err != nil {
		return "", errUnavailable(err)
	}
	defer done()
	old, ok := f.settings.Load().Get(c.Section, c.Key)
	if !ok {
		return "", fault.New(fault.NotFound, "unknown_config_value")
	}
	if c.Volatile {
		f.settings.HideVolatile(c.Section, c.Key)
	} else if err := f.write(ctx, c, metapb.ConfigChange_UNSET); err != nil {
		return "", err
	}
	c.Value = ""
	f.logChange("configuration deleted", c)
	return old, nil
}

// write writes to the layer that the key belongs to, and clears away
// what would hide the result in a stronger one.
func (f *Configuration) write(ctx context.Context, c ConfigChange, op metapb.ConfigChange_Op) error {
	level, node := config.Node, f.group.self
	if c.ClusterWide || config.Shared(c.Section, c.Key) {
		level, node = config.ClusterWide, ""
	}
	if op == metapb.ConfigChange_UNSET && f.settings.SetBelow(level, c.Section, c.Key) {
		op = metapb.ConfigChange_HIDE
	}
	change := &metapb.ConfigChange{Op: op, Node: node, Section: c.Section, Key: c.Key}
	if op == metapb.ConfigChange_SET {
		change.Value = c.Value
	}
	if _, err := f.proposer.propose(ctx, changeConfigCommand(change)); err != nil {
		return err
	}
	if own := f.fsm.load().perNode[f.group.self]; level == config.ClusterWide && own.Has(c.Section, c.Key) {
		unset := &metapb.ConfigChange{Op: metapb.ConfigChange_UNSET, Node: f.group.self, Section: c.Section, Key: c.Key}
		if _, err := f.proposer.propose(ctx, changeConfigCommand(unset)); err != nil {
			return err
		}
	}
	f.settings.DropVolatile(c.Section, c.Key)
	return nil
}

func changeConfigCommand(c *metapb.ConfigChange) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_ChangeConfig{ChangeConfig: c}}
}

func (f *Configuration) logChange(msg string, c ConfigChange) {
	value := c.Value
	if config.Sensitive(c.Section, c.Key) {
		value = "****"
	}
	f.log.Info(msg, zap.String("section", c.Section), zap.String("key", c.Key), zap.String("value", value),
		zap.Bool("volatile", c.Volatile))
}

// Reload reads the ini files of this node again and forgets volatile
// values.
func (f *Configuration) Reload(ctx context.Context) error {
	done, err := pause.Turn(ctx, f.turn)
	if err != nil {
		return errUnavailable(err)
	}
	defer done()
	if err := f.settings.Reload(); err != nil {
		return err
	}
	if f.group.raft.Load() == nil {
		return errUnavailable(nil)
	}
	return f.storeAdminHashes(ctx)
}

// adminHashSection keeps the stored forms of the passwords that this node's ini
// files and environment give in plain text. Its name is one that no ini file
// or request can spell.
const adminHashSection = "\x00admins"

// storeAdminHashes hashes plain-text administrators and keeps what it made, so
// that the salts, and with them sessions, outlive a restart.
func (f *Configuration) storeAdminHashes(ctx context.Context) error {
	known := f.fsm.load().perNode[f.group.self].Set[adminHashSection]
	fresh, err := f.settings.HashAdmins(known)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	for name, stored := range fresh {
		c := &metapb.ConfigChange{Op: metapb.ConfigChange_SET, Node: f.group.self, Section: adminHashSection, Key: name, Value: stored}
		if _, err := f.proposer.submit(ctx, changeConfigCommand(c)); err != nil {
			return err
		}
	}
	return nil
}

// hashAdmins lets the administrators of files and environment log in before
// the stored forms of their passwords are kept, which storeAdminHashes does when
// there is a leader.
func (f *Configuration) hashAdmins() {
	if _, err := f.settings.HashAdmins(f.fsm.load().perNode[f.group.self].Set[adminHashSection]); err != nil {
		f.log.Error("administrators cannot log in", zap.Error(err))
	}
}
