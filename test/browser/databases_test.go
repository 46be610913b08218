package browser

import (
	"fmt"
	"testing"
)

// The list of databases shows what others do: to server administrators by a feed, which is opened again when it breaks
// off, and to other accounts by looking again.
func TestDatabasesAreLive(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 3)
	s.account("ann", "secret")
	s.call("PUT", "/pond/_security", `{"members":{"names":["ann"],"roles":[]},"admins":{"names":[],"roles":[]}}`, 200)
	s.call("PUT", "/_node/_local/_config/chttpd/admin_only_all_dbs", `"false"`, 200)
	reader := newScreen(t, s)
	reader.open("#/")
	reader.says("pond")
	reader.press("Log in")
	reader.logIn("ann", "secret")
	c.open("#/")
	count := func(of *screen, db string, want int) {
		t.Helper()
		of.until(fmt.Sprintf(`[...document.querySelectorAll("tbody tr")].some((r) => r.cells[0].innerText === %q && r.cells[1].innerText === "%d")`, db, want))
	}
	count(c, "pond", 3)
	count(reader, "pond", 3)
	s.call("PUT", "/pond/toad", `{}`, 201)
	count(c, "pond", 4)
	s.call("PUT", "/lake", "", 201)
	count(c, "lake", 0)
	count(reader, "pond", 4)
	s.call("DELETE", "/lake", "", 200)
	c.until(`!document.body.innerText.includes("lake")`)
	s.stop()
	c.says("What changes is not shown at the moment")
	c.until(`performance.getEntriesByType("resource").some((e) => e.name.includes("_db_updates"))`)
	s.start()
	s.call("PUT", "/pond/newt", `{}`, 201)
	count(c, "pond", 5)
}
