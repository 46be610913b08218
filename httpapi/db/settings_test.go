package db

import (
	"testing"

	"divan/cluster"
	"divan/cluster/access"
	"divan/cluster/meta/dbsetting"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// A node that has not heard of a database's successor learns of it by the
// refusal of a change, and does not say that there is none.
func TestSettingFindsTheSuccessor(t *testing.T) {
	d := apitest.NodeDeps(t, "divan@127.0.0.1", nil)
	apitest.Must(t, d.Coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
	a := core.New(d)
	a.Mount([]core.Route{{Table: core.DBTable, Path: "/_probe", Access: access.Documents, Methods: core.Methods{Get: func(c *core.Call) error { return findSuccessor(t, c) }}}})
	if w := apitest.Ask(t, a, "GET /db/_probe", "", "Authorization: Basic YWRtOnBhc3M="); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func findSuccessor(t *testing.T, c *core.Call) error {
	t.Helper()
	coordinator := c.API.Deps.Coordinator
	asked, changed := 0, 0
	mayI := func() error {
		asked++
		return nil
	}
	err := alter(c, mayI, func() error {
		changed++
		if changed == 1 {
			apitest.Must(t, coordinator.DeleteDB(t.Context(), "db"))
			apitest.Must(t, coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
		}
		return c.DB.Set(t.Context(), dbsetting.RevsLimit, 7)
	})
	if err != nil || asked != 2 || changed != 2 {
		t.Errorf("asked %d times, changed %d times: %v", asked, changed, err)
	}
	db, err := coordinator.DB(t.Context(), "db")
	apitest.Must(t, err)
	if n := db.Setting(dbsetting.RevsLimit); n != 7 {
		t.Errorf("the limit of the successor is %d", n)
	}
	asked, changed = 0, 0
	err = alter(c, mayI, func() error {
		changed++
		return fault.New(fault.NotFound, "always another one")
	})
	if !fault.Is(err, fault.NotFound) || asked != settingTries || changed != settingTries {
		t.Errorf("asked %d times, changed %d times: %v", asked, changed, err)
	}
	return c.Response.SendOK(200)
}
