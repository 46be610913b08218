package httpapi

import (
	"divan/cluster"
	"divan/storage/fault"
	"testing"
)

// A node that has not heard of a database's successor learns of it by the
// refusal of a change, and does not say that there is none.
func TestSettingFindsTheSuccessor(t *testing.T) {
	d := nodeDeps(t, "divan@127.0.0.1", nil)
	must(t, d.Coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
	a := newEngine(d)
	a.mount([]route{{table: dbTable, path: "/_probe", methods: methods{get: func(c *call) error { return findSuccessor(t, c) }}}})
	if w := ask(t, a, "GET /db/_probe", "", "Authorization: Basic YWRtOnBhc3M="); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func findSuccessor(t *testing.T, c *call) error {
	t.Helper()
	coordinator := c.api.deps.Coordinator
	asked, changed := 0, 0
	mayI := func() error {
		asked++
		return nil
	}
	err := c.alter(mayI, func() error {
		changed++
		if changed == 1 {
			must(t, coordinator.DeleteDB(t.Context(), "db"))
			must(t, coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
		}
		return c.db.SetRevsLimit(t.Context(), 7)
	})
	if err != nil || asked != 2 || changed != 2 {
		t.Errorf("asked %d times, changed %d times: %v", asked, changed, err)
	}
	db, err := coordinator.DB(t.Context(), "db")
	must(t, err)
	if n := db.RevsLimit(); n != 7 {
		t.Errorf("the limit of the successor is %d", n)
	}
	asked, changed = 0, 0
	err = c.alter(mayI, func() error {
		changed++
		return fault.New(fault.NotFound, "always another one")
	})
	if !fault.Is(err, fault.NotFound) || asked != settingTries || changed != settingTries {
		t.Errorf("asked %d times, changed %d times: %v", asked, changed, err)
	}
	return c.sendOK(200)
}
