package httpapi

import (
	"maps"
	"net/http"
	"slices"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/storage/doc"
	"divan/storage/fault"
)

// adminSection holds the server administrators.
const adminSection = "admins"

// getConfig answers GET /_node/{name}/_config: everything that is set.
func getConfig(c *call) error {
	all := c.cfg.All()
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, name), ':')
		out = appendTexts(out, all[name])
	}
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// getConfigSection answers GET /_node/{name}/_config/{section}.
func getConfigSection(c *call) error {
	return c.sendJSON(http.StatusOK, appendTexts(nil, c.cfg.Section(c.path[3])))
}

// getConfigKey answers GET /_node/{name}/_config/{section}/{key}.
func getConfigKey(c *call) error {
	value, ok := c.cfg.Get(c.path[3], c.path[4])
	if !ok {
		return fault.New(fault.NotFound, "unknown_config_value")
	}
	return c.sendJSON(http.StatusOK, doc.AppendString(nil, value))
}

// putConfigKey answers PUT /_node/{name}/_config/{section}/{key} with the value
// that was there before. Any JSON value may be set (api.md section 20, row 10).
func putConfigKey(c *call) error {
	change := c.configChange()
	if err := config.CheckName(change.Section, change.Key); err != nil {
		return err
	}
	body, err := c.readJSON()
	if err != nil {
		return err
	}
	if change.Value, err = config.ValueFromJSON(body); err != nil {
		return err
	}
	if change.Section == adminSection && config.IsHashed(change.Value) && !auth.ValidAdmin(change.Value) {
		return fault.New(fault.BadRequest, "An administrator's password must not begin like the stored form of one, unless it is one.")
	}
	old, err := c.api.deps.Meta.SetConfig(c.r.Context(), change)
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, doc.AppendString(nil, old))
}

// deleteConfigKey answers DELETE /_node/{name}/_config/{section}/{key} with the
// value that was there.
func (n *nodeFamily) deleteConfigKey(c *call) error {
	change := c.configChange()
	if change.Section == adminSection {
		n.admins.Lock() // two that go at the same time would each see the other
		defer n.admins.Unlock()
		if c.api.deps.Config.LastAdmin(change.Key, change.Volatile, auth.ValidAdmin) {
			return fault.New(fault.Forbidden, "The last server administrator cannot be deleted: nobody could set another one. Set that first.")
		}
	}
	old, err := c.api.deps.Meta.DeleteConfig(c.r.Context(), change)
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, doc.AppendString(nil, old))
}

// configChange returns the key that the path names.
func (c *call) configChange() meta.ConfigChange {
	return meta.ConfigChange{
		Section: c.path[3], Key: c.path[4], Volatile: c.r.Header.Get("X-Couch-Persist") == "false",
	}
}

// reloadConfig answers POST /_node/{name}/_config/_reload.
func reloadConfig(c *call) error {
	if err := c.api.deps.Meta.ReloadConfig(c.r.Context()); err != nil {
		return err
	}
	return c.sendOK(http.StatusOK)
}
