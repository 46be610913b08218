package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Documents are seen as a table of their fields, the most frequent first; others can be chosen.
func TestTableOfDocuments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	docs := []string{
		`{"_id":"long","name":"` + strings.Repeat("l", 5000) + `","note":"only here"}`,
		`{"_id":"nested","name":"1","weight":12345678901234567890,"parts":{"legs":[1,2,3],"x":"<script>"}}`,
		`{"_id":"large","name":"` + strings.Repeat("m", 400_000) + `"}`,
	}
	for i := range 60 {
		docs = append(docs, fmt.Sprintf(`{"_id":"p%02d","name":"frog %d","weight":%d}`, i, i, i*1000))
	}
	s.call("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`, 201)
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says("63 documents")
	c.press("Table")
	c.says("12345678901234567890") // all digits
	c.says(`{"legs":[1,2,3],"x":"<script>"}`)
	c.says(`"1"`) // not the number
	c.says("too large for a table")
	columns := eval[[]string](c, `[...document.querySelectorAll("thead th")].map((e) => e.innerText)`)
	if want := "Id name weight note parts Revision"; strings.Join(columns, " ") != want {
		t.Errorf("columns %q, want %q", columns, want)
	}
	if title := eval[string](c, `[...document.querySelectorAll("td[title]")].map((e) => e.title)[0]`); title != strings.Repeat("l", 1000) {
		t.Errorf("the title of a long value has %d characters", len(title))
	}
	c.shot("table")
	c.accessible()
	c.exec("open the fields", `document.querySelector("details.columns summary").click()`)
	c.exec("hide names", `[...document.querySelectorAll(".choices label")].find((e) => e.innerText === "name").click()`)
	c.until(`[...document.querySelectorAll("thead th")].every((e) => e.innerText !== "name")`)
	c.until(`new URLSearchParams(location.hash.split("?")[1]).get("columns") === '["weight","note","parts"]'`)
	c.shot("columns")
	c.accessible()
	c.press("Next page")
	c.says("59000")
	if eval[bool](c, `document.body.innerText.includes("frog 59")`) {
		t.Error("the next page shows a field that was hidden")
	}
}

// Documents that are selected on several pages are deleted at once; one that was changed meanwhile stays, and is told.
func TestDeleteManyDocuments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	var docs []string
	for i := range 60 {
		docs = append(docs, fmt.Sprintf(`{"_id":"doc-%02d"}`, i))
	}
	s.call("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`, 201)
	rev := s.call("GET", "/pond/doc-07", "", 200)["_rev"]
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says("doc-49")
	c.exec("select all", `document.querySelector("[aria-label='Select all on this page']").click()`)
	c.says("50 selected")
	c.press("Next page")
	c.says("doc-59")
	c.exec("select one", `document.querySelector("[aria-label='Select doc-59']").click()`)
	c.says("51 selected")
	s.call("PUT", "/pond/doc-07", fmt.Sprintf(`{"_rev":%s}`, quote(rev)), 201)
	c.press("Delete selected")
	c.says("51 documents are deleted, at the revisions that were shown.")
	c.shot("ask")
	c.accessible()
	c.press("Delete 51 documents")
	c.says("1 document is still there")
	c.says("somebody has changed it meanwhile")
	c.shot("told")
	c.accessible()
	c.press("Close")
	c.says("10 documents")
	if n := s.call("GET", "/pond", "", 200)["doc_count"]; n != json.Number("10") {
		t.Errorf("%v documents are left", n)
	}
}

// A partition is a list of its own.
func TestPartition(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond?partitioned=true", "", 201)
	for _, id := range []string{"north:1", "north:2", "south:1"} {
		s.call("PUT", "/pond/"+id, "{}", 201)
	}
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says("3 documents")
	c.fill("Partition", "north")
	c.exec("enter", `document.querySelector("form[role=search]").requestSubmit()`)
	c.until(`location.hash === "#/db/pond?partition=north" && document.querySelectorAll("tbody tr").length === 2`)
	c.press("Table")
	c.until(`document.querySelectorAll("table.fields tbody tr").length === 2`)
	c.accessible()
	c.exec("be busy", `document.querySelector("table.fields").setAttribute("aria-busy", "true")`)
	c.accessible()
	c.open("#/db/pond?partition=_no")
	c.says("Partition must not start with an underscore")
	c.until(`document.querySelectorAll("tbody tr").length === 0`)
}

// An account that may only read is told so when it deletes, and what another tab has logged in as.
func TestDeleteManyRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.account("ada", "secret")
	s.account("bob", "secret")
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/_security", `{"admins":{"names":[]},"members":{"names":["ada","bob"],"roles":[]}}`, 200)
	s.call("PUT", "/pond/_design/rules", `{"validate_doc_update":"function (d) { throw({forbidden: 'not you'}); }"}`, 201)
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("ada", "secret")
	c.says("1 document")
	c.exec("select", `document.querySelector("[aria-label^='Select all']").click()`)
	c.press("Delete selected")
	c.press("Delete 1 document")
	c.says("1 document is still there")
	c.press("Close")
	c.until(`document.querySelector("dialog") === null`)
	c.exec("select", `document.querySelector("[aria-label^='Select all']").click()`)
	c.otherTab("bob", "secret")
	c.press("Delete selected")
	c.press("Delete 1 document")
	c.says("Another tab has logged in as “bob” meanwhile")
	c.accessible()
}

// otherTab logs in as another user, as another tab of the browser would.
func (c *screen) otherTab(name, password string) {
	c.t.Helper()
	status := eval[int](c, fmt.Sprintf(`fetch("/_session", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({name: %q, password: %q})}).then((r) => r.status)`, name, password))
	if status != 200 {
		c.t.Fatalf("log-in as %s: %d", name, status)
	}
}
