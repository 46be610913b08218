package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// oneSetting is a member of what GET …/_settings answers.
type oneSetting struct {
	Section, Key, Layer, Default, Meaning string
	Value                                 *string
	Set, Sensitive, Changeable, Restart   bool
	Shared                                bool
}

// Settings are told with their meaning and where they come from; secrets are not told.
func TestSettings(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{
		{"adm", "PUT", "/_node/_local/_config/log/level", `"debug"`, 200, ""},
		{"adm", "PUT", "/_node/_local/_config/replicator/password", `"hush"`, 200, ""},
		{"adm", "PUT", "/_node/_local/_config/own/key", `"1"`, 200, ""},
		{"adm", "DELETE", "/_node/_local/_config/cluster/q", "", 200, ""},
		{"", "GET", "/_node/_local/_settings", "", 401, ""},
		{"adm", "PUT", "/_node/_local/_settings", "{}", 405, ""},
	})
	w := apitest.Ask(t, a, "GET /_node/_local/_settings", "", asAdmin)
	if w.Code != 200 || strings.Contains(w.Body.String(), "hush") || strings.Contains(w.Body.String(), "-pbkdf2") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var all struct{ Settings []oneSetting }
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	of := map[string]oneSetting{}
	for _, s := range all.Settings {
		of[s.Section+"/"+s.Key] = s
	}
	if s := of["log/level"]; s.Value == nil || *s.Value != "debug" || s.Layer != "node" || s.Default != "info" || !s.Changeable || s.Restart || s.Meaning == "" {
		t.Errorf("a changed one: %+v", s)
	}
	if s := of["log/file"]; s.Set || s.Value != nil || s.Layer != "default" || !s.Restart {
		t.Errorf("one that is not set: %+v", s)
	}
	if s := of["replicator/password"]; !s.Set || s.Value != nil || !s.Sensitive {
		t.Errorf("a secret one: %+v", s)
	}
	if s := of["admins/adm"]; !s.Set || s.Value != nil || !s.Sensitive || !s.Shared {
		t.Errorf("an administrator: %+v", s)
	}
	if s := of["own/key"]; s.Value == nil || s.Meaning != "" {
		t.Errorf("one that nobody knows: %+v", s)
	}
	if s := of["cluster/q"]; s.Set || s.Layer != "node" {
		t.Errorf("a hidden one: %+v", s)
	}
	if s := of["cluster/port"]; s.Changeable || !s.Restart {
		t.Errorf("one that is read before others are found: %+v", s)
	}
}
