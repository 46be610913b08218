package node

import (
	"encoding/json"
	"net/http"

	"divan/cluster/config"
	"divan/httpapi/core"
)

// settingAnswer is a setting as getSettings shows it.
type settingAnswer struct {
	Section    string  `json:"section"`
	Key        string  `json:"key"`
	Value      *string `json:"value"` // nil: it is not set, or not shown
	Set        bool    `json:"set"`
	Layer      string  `json:"layer"` // where the value, or that there is none, comes from
	Default    string  `json:"default"`
	Meaning    string  `json:"meaning"`
	Sensitive  bool    `json:"sensitive"`  // the value is not shown
	Changeable bool    `json:"changeable"` // PUT …/_config/{section}/{key} has an effect
	Restart    bool    `json:"restart"`    // after a restart only
	Shared     bool    `json:"shared"`     // set through HTTP, it holds for all nodes
}

// getSettings answers GET /_node/{name}/_settings: what is set and what could be, with
// its meaning, its default and where it comes from. Values that must not be in a log are
// not here either: _config shows them.
func getSettings(c *core.Call) error {
	known := map[[2]string]config.Description{}
	for _, d := range config.Descriptions() {
		known[[2]string{d.Section, d.Key}] = d
	}
	out := struct {
		Settings []settingAnswer `json:"settings"`
	}{}
	for _, k := range c.Config.Keys() {
		section, key := k[0], k[1]
		d := known[k]
		s := settingAnswer{
			Section: section, Key: key, Layer: c.API.Deps.Config.Source(section, key).String(), Default: d.Default, Meaning: d.Meaning,
			Sensitive: config.Sensitive(section, key), Changeable: config.Changeable(section, key), Restart: config.AtStart(section, key),
			Shared: config.Shared(section, key),
		}
		value, set := c.Config.Get(section, key)
		if s.Set = set; set && !s.Sensitive {
			s.Value = &value
		}
		out.Settings = append(out.Settings, s)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusOK, body)
}
