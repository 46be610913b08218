package browser

import (
	"fmt"
	"strings"
	"testing"
)

// acceptOnly makes writes be answered as by a cluster of which fewer copies than asked have them.
func (c *screen) acceptOnly() {
	c.t.Helper()
	c.exec("answer 202", `
		const send = window.fetch;
		window.fetch = async (to, o) => {
			const answer = await send(to, o);
			const write = !/_session/.test(to) && /PUT|POST|DELETE/.test(o?.method);
			return write && answer.ok ? new Response(answer.body, {status: 202, headers: answer.headers}) : answer;
		};`)
}

// A user who deletes a document that another user has changed sees the change, and nothing
// is deleted.
func TestConflictOnDelete(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	_ = c.editorText() // it is loaded
	second := s.call("PUT", "/pond/frog", fmt.Sprintf(`{"_rev":%s,"legs":"theirs"}`, quote(rev)), 201)["rev"]
	c.press("Delete")
	c.says("is deleted, at revision 1-")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("Nothing was deleted: somebody has changed the document meanwhile.")
	c.until(`document.querySelector("dialog") === null`)
	c.until(`document.querySelector(".editor").shadowRoot.textContent.includes("theirs")`)
	c.shot("newest")
	c.accessible()
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":"mine"}`, quote(second)))
	c.says("Not saved")
	s.call("PUT", "/pond/frog", fmt.Sprintf(`{"_rev":%s,"legs":"theirs again"}`, quote(second)), 201)
	c.press("Delete")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("Nothing was deleted. Somebody else has saved revision 3-")
	c.until(`document.querySelectorAll(".editor").length === 2`) // what was typed is still there
	c.press("Take theirs")
	c.until(`document.querySelectorAll(".editor").length === 1`)
	third := s.call("GET", "/pond/frog", "", 200)["_rev"]
	s.call("DELETE", fmt.Sprintf("/pond/frog?rev=%s", third), "", 200)
	c.press("Delete")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("Somebody has deleted this document meanwhile.")
}

// A save that fewer copies have than asked is told as such: of a document, of a new one, of a deletion.
func TestAcceptedIsTold(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	c.acceptOnly()
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":5}`, quote(rev)))
	c.press("Save")
	c.says("Accepted as revision 2-")
	c.says("fewer copies than asked have it yet")
	c.accessible()
	c.press("Delete")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("Deletion accepted")
	c.shot("deletion")
	c.accessible()
	c.press("Close")
	c.says("No documents yet.")
	c.press("New document")
	c.write(`{"_id":"toad"}`)
	c.press("Save")
	c.says("Accepted as revision 1-")
	c.press("Attachments")
	c.says("No attachments yet.")
	c.press("Text")
	c.until(`!document.body.innerText.includes("Accepted as revision")`)
	if doc := s.call("GET", "/pond/toad", "", 200); !strings.HasPrefix(doc["_rev"].(string), "1-") {
		t.Errorf("stored: %v", doc)
	}
}

// What was written as one account is not saved as another without a question.
func TestOtherAccountInOtherTab(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	s.account("bob", "secret")
	s.call("PUT", "/pond/_security", `{"admins":{"names":[]},"members":{"names":["bob"],"roles":[]}}`, 200)
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":"of adm"}`, quote(rev)))
	c.says("Not saved")
	c.otherTab("bob", "secret")
	c.press("Save")
	c.says("Another tab has logged in as “bob” meanwhile: this one was opened as “adm”.")
	c.shot("other")
	c.accessible()
	if doc := s.call("GET", "/pond/frog", "", 200); doc["_rev"] != rev {
		t.Errorf("it was saved: %v", doc)
	}
	c.press("Delete")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.until(`document.querySelector("dialog")?.innerText.includes("Another tab has logged in")`)
	c.press("Cancel")
	c.press("Save as bob")
	c.says("Saved as revision 2-")
}
