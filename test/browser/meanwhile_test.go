package browser

import (
	"strings"
	"testing"
)

// Nothing is deleted for a revision that was deleted itself meanwhile: no leaf would be left.
func TestKeptRevisionIsGone(t *testing.T) {
	t.Parallel()
	s, c := newConflict(t, "#/revisions/pond/frog?rev=9-ff")
	c.until(`document.querySelectorAll(".editor").length === 1`)
	c.exec("choose a second leaf", `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("3-cccc")).querySelector("input").click()`)
	c.until(`document.querySelectorAll(".editor").length === 2`)
	c.until(`[...document.querySelectorAll(".editor")].every((e) => e.shadowRoot?.textContent.includes("_rev"))`)
	c.exec("keep", `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("3-cccc")).querySelector("button").click()`)
	c.says("is kept. 3 revisions in conflict with it are deleted")
	s.call("DELETE", "/pond/frog?rev=3-cccccccccccccccccccccccccccccccc", "", 200)
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("The revision to keep has been changed or deleted meanwhile.")
	if doc := s.call("GET", "/pond/frog?conflicts=true", "", 200); len(doc["_conflicts"].([]any)) != 2 {
		t.Errorf("conflicts: %v", doc["_conflicts"])
	}
}

// What was begun by one account is not written by another one, which has logged in in another tab.
func TestOtherAccountWritesNothing(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 2)
	s.account("bob", "secret")
	s.call("PUT", "/pond/_security", `{"admins":{"names":["bob"]},"members":{"names":["bob"]}}`, 200)
	c.open("#/function/pond/frogs/filters/mine")
	c.write("function () { return true; }")
	c.says("Not saved")
	c.otherTab("bob", "secret")
	c.press("Save")
	c.says("Another tab has logged in as “bob” meanwhile: this one was opened as “adm”.")
	s.call("GET", "/pond/_design/frogs", "", 404)
}

// What is written is there when one leaves a view while it is typed, and does not come back once it was saved.
func TestDraftWhenLeaving(t *testing.T) {
	t.Parallel()
	s, c := newPond(t, 2)
	s.call("PUT", "/pond/_design/frogs", `{"views":{"legs":{"map":"function (doc) { emit(doc.legs); }","reduce":"function () { return 7; }"}}}`, 201)
	c.open("#/view/pond/frogs/legs")
	c.says("custom")
	c.choose("Reduce function", "_sum")
	c.choose("Reduce function", "custom")
	c.until(`[...document.querySelectorAll(".editor")].some((e) => e.shadowRoot?.textContent.includes("return 7;"))`)
	c.write("function (doc) { emit('typed last'); }")
	c.exec("leave", `location.hash = "#/designs/pond"`)
	c.until(`JSON.stringify(sessionStorage).includes("typed last")`)
}

// Passwords in an address are in no draft.
func TestNoPasswordInDraft(t *testing.T) {
	t.Parallel()
	_, c := newAdminScreen(t, "#/tasks")
	c.says("Log out")
	c.open("#/replicate")
	c.fill("Source: database", "https://u:topsecret@far.example/db")
	c.until(`JSON.stringify(sessionStorage).includes("far.example")`)
	if kept := eval[string](c, `JSON.stringify(sessionStorage)`); strings.Contains(kept, "topsecret") {
		t.Errorf("kept: %s", kept)
	}
}
