package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// conflicting stores a document with four live leaves, of which two do not know all their
// ancestors, one less than the other, and a deleted one.
func conflicting(s *server) {
	s.call("PUT", "/pond", "", 201)
	leaf := func(members, path string, start int) string {
		return fmt.Sprintf(`{"_id":"frog",%s,"_revisions":{"start":%d,"ids":[%s]}}`, members, start, path)
	}
	s.call("POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[`+strings.Join([]string{
		leaf(`"legs":4,"color":"green","weight":12345678901234567890`, `"cccccccccccccccccccccccccccccccc","bb","aa"`, 3),
		leaf(`"legs":5,"color":"green"`, `"dddddddddddddddddddddddddddddddd","bb","aa"`, 3),
		leaf(`"_deleted":true`, `"ee","aa"`, 2),
		leaf(`"legs":6`, `"ff","77","66","55","44","33","22"`, 9),
		leaf(`"legs":8`, `"fe","77","66","55","44","33","22","11"`, 9),
	}, ",")+`]}`, 201)
}

// newConflict is a server with that document, and a view of the console with the administrator logged in.
func newConflict(t *testing.T, hash string) (*server, *screen) {
	t.Helper()
	s := newServer(t)
	conflicting(s)
	c := newScreen(t, s)
	c.open(hash)
	c.logIn("adm", "pass")
	return s, c
}

// The tree of revisions shows conflicts, two of them side by side, and ends them with two clicks.
func TestConflictIsResolved(t *testing.T) {
	t.Parallel()
	s, c := newConflict(t, "#/doc/pond/frog")
	if text := c.editorText(); strings.Contains(text, "_conflicts") {
		t.Errorf("the editor shows %s", text)
	}
	c.press("Revisions: 3 conflicts")
	c.says("4 revisions in conflict, 1 deleted leaf.")
	c.until(`document.querySelectorAll("svg.revisions a").length === 5`)
	states := eval[string](c, `[...document.querySelectorAll("svg.revisions a")].map((a) => a.ariaLabel).sort().join("; ")`)
	if want := "2-ee, deleted; 3-cccccccccccccccccccccccccccccccc, conflict; 3-dddddddddddddddddddddddddddddddd, conflict; 9-fe, conflict; 9-ff, winner"; states != want {
		t.Errorf("leaves %s, want %s", states, want)
	}
	for _, text := range []string{"1 older", "5 more", "2-11", "8-77", "1-aa", "2-bb"} {
		c.until(`document.querySelector("svg.revisions").textContent.includes(` + quote(text) + `)`)
	}
	c.until(`document.querySelectorAll(".editor").length === 2`)
	c.says("Different: legs")
	c.until(`[...document.querySelectorAll(".editor")].every((e) => e.shadowRoot?.textContent.includes("legs"))`)
	c.shot("tree")
	c.accessible()
	// By the keyboard: a leaf of the drawing is a link.
	c.exec("focus a leaf", `document.querySelector("svg.revisions a.deleted").focus()`)
	c.run("enter", chromedp.KeyEvent("\r"))
	c.until(`new URLSearchParams(location.hash.split("?")[1]).getAll("rev").includes("2-ee")`)
	c.until(`[...document.querySelectorAll(".editor")].some((e) => e.shadowRoot?.textContent.includes('"_deleted": true'))`)
	c.exec("keep", `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("3-cccc")).querySelector("button").click()`)
	c.says("is kept. 3 revisions in conflict with it are deleted")
	c.shot("ask")
	c.accessible()
	c.press("Delete 3 revisions")
	c.says("3 revisions deleted.")
	c.says("No conflict, 4 deleted leaves.")
	doc := s.call("GET", "/pond/frog?conflicts=true", "", 200)
	if doc["_rev"] != "3-cccccccccccccccccccccccccccccccc" || doc["_conflicts"] != nil {
		t.Errorf("it is now %v", doc)
	}
	c.accessible()
}

// A change that another user has made to a leaf meanwhile is told, and nothing of it is
// lost.
func TestConflictChangesMeanwhile(t *testing.T) {
	t.Parallel()
	s, c := newConflict(t, "#/revisions/pond/frog")
	c.says("4 revisions in conflict")
	rev := s.call("PUT", "/pond/frog", `{"_rev":"9-ff","legs":7}`, 201)["rev"]
	c.exec("keep", `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("3-cccc")).querySelector("button").click()`)
	c.press("Delete 3 revisions")
	c.says("2 revisions deleted. Not deleted: 9-ff: somebody has changed it meanwhile.")
	c.says("2 revisions in conflict")
	if doc := s.call("GET", "/pond/frog", "", 200); doc["_rev"] != rev {
		t.Errorf("it is now %v", doc)
	}
}

// A deleted document has revisions too; one that was never there has none.
func TestRevisionsOfDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	rev := s.call("PUT", "/pond/frog", "{}", 201)["rev"]
	s.call("DELETE", fmt.Sprintf("/pond/frog?rev=%s", rev), "", 200)
	c := newScreen(t, s)
	c.open("#/revisions/pond/frog")
	c.logIn("adm", "pass")
	c.says("The document is deleted")
	c.until(`document.querySelectorAll("svg.revisions a.deleted").length === 1`)
	c.accessible()
	c.open("#/revisions/pond/none")
	c.says("missing")
}
