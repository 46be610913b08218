package browser

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// The way of a person on the first day: log in, make a database, a document, edit it, delete all.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := newScreen(t, s)
	c.run("open the root", chromedp.Navigate("http://"+s.host+"/")) // a browser is sent to the console
	c.says("Password")
	c.shot("login")
	c.accessible()
	c.logIn("adm", "wrong")
	c.says("Name or password is incorrect.")
	c.logIn("adm", "pass")
	c.says("_replicator")
	c.press("New database")
	c.fill("Name", "Pond")
	c.accessible()
	c.press("Create")
	c.says("Only lowercase characters")
	c.fill("Name", "pond")
	c.press("Create")
	c.says("No documents yet.")
	c.press("New document")
	c.write(`{"_id":"frog","legs":4,"weight":12345678901234567890}`)
	c.press("Save")
	c.says("frog")
	c.until(`location.hash === "#/doc/pond/frog"`)
	if text := c.editorText(); !strings.Contains(text, `"weight": 12345678901234567890`) {
		t.Errorf("the editor shows another number: %s", text)
	}
	c.write(`{"_id":"frog","_rev":` + quote(s.call("GET", "/pond/frog", "", 200)["_rev"]) + `,"legs":5}`)
	c.says("Not saved")
	c.shot("document")
	c.accessible()
	c.run("save with a key", key("s", 2))
	c.says("Saved as revision 2-")
	if doc := s.call("GET", "/pond/frog", "", 200); doc["legs"] != json.Number("5") {
		t.Errorf("stored: %v", doc)
	}
	c.write(`{"legs":`)
	c.press("Save")
	c.says("invalid UTF-8 JSON")
	c.press("Discard changes")
	c.press("Delete")
	c.says("is deleted, at revision 2-")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("No documents yet.")
	c.shot("empty")
	c.press("Delete database")
	c.fill("Its name, to be sure", "pon")
	c.until(`document.querySelector("dialog .danger").disabled`)
	c.fill("Its name, to be sure", "pond")
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("_replicator")
	c.until(`!document.body.innerText.includes("pond")`)
	c.press("Log out")
	c.says("Password")
}

func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// Another user saves first: both texts are shown, and either can win.
func TestConflictOnSave(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":"mine"}`, quote(rev)))
	second := s.call("PUT", "/pond/frog", fmt.Sprintf(`{"_rev":%s,"legs":"theirs"}`, quote(rev)), 201)["rev"]
	c.press("Save")
	c.says("Somebody else has saved revision")
	c.until(`document.querySelectorAll(".editor").length === 2`)
	c.until(`document.querySelectorAll(".editor")[1].shadowRoot?.textContent.includes("theirs")`)
	c.shot("both")
	c.accessible()
	c.press("Save mine over theirs")
	c.says("Saved as revision 3-")
	if doc := s.call("GET", "/pond/frog", "", 200); doc["legs"] != "mine" {
		t.Errorf("stored: %v", doc)
	}
	third := s.call("GET", "/pond/frog", "", 200)["_rev"]
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":"mine again"}`, quote(second)))
	s.call("PUT", "/pond/frog", fmt.Sprintf(`{"_rev":%s,"legs":"theirs again"}`, quote(third)), 201)
	c.press("Save")
	c.press("Take theirs")
	c.until(`document.querySelectorAll(".editor").length === 1`)
	if text := c.editorText(); !strings.Contains(text, "theirs again") {
		t.Errorf("the editor shows %s", text)
	}
}

// Nothing that was written is lost: not by a reload, the end of a session, or a server that is away.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":6}`, quote(rev)))
	c.says("Not saved")
	c.run("reload", chromedp.Reload())
	c.says("This is the draft from before")
	if text := c.editorText(); !strings.Contains(text, `"legs":6`) {
		t.Errorf("after a reload: %s", text)
	}
	c.run("the session ends", command(network.ClearBrowserCookies, cdp.Empty{}))
	c.press("Save")
	c.says("Your session has ended")
	c.shot("expired")
	c.accessible()
	c.fill("Password", "pass")
	c.press("Log in")
	c.until(`document.querySelector("dialog") === null`)
	s.stop()
	c.press("Save")
	c.says("The server cannot be reached.")
	s.start()
	c.press("Try again")
	c.says("Saved as revision 2-")
	if doc := s.call("GET", "/pond/frog", "", 200); doc["legs"] != json.Number("6") {
		t.Errorf("stored: %v", doc)
	}
}

// What is typed while a text is saved stays, and is saved next.
func TestTypingWhileSaving(t *testing.T) {
	t.Parallel()
	s, c, rev := newEditing(t)
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":1}`, quote(rev)))
	c.exec("hold requests", `
		const send = window.fetch, held = new Promise((go) => window.release = go);
		window.fetch = async (to, o) => (o.method === "PUT" && await held, send(to, o));`)
	c.press("Save")
	c.says("Saving")
	c.write(fmt.Sprintf(`{"_id":"frog","_rev":%s,"legs":2}`, quote(rev)))
	c.run("save again, which waits", key("s", 2))
	c.exec("release", "release()")
	c.says("Not saved")
	if legs := s.call("GET", "/pond/frog", "", 200)["legs"]; legs != json.Number("1") {
		t.Errorf("saved first: %v", legs)
	}
	c.press("Save")
	c.says("Saved as revision 3-")
	if legs := s.call("GET", "/pond/frog", "", 200)["legs"]; legs != json.Number("2") {
		t.Errorf("saved next: %v", legs)
	}
	c.write(`{"draft":"of an account"}`)
	c.until("sessionStorage.length === 1")
	c.press("Log out")
	c.says("Password")
	c.until("sessionStorage.length === 0")
}

// A path that a browser would shorten is not asked for: it is that of something else.
func TestNamesWithoutAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	for _, id := range []string{".", ".."} {
		s.call("POST", "/pond", fmt.Sprintf(`{"_id":%q}`, id), 201)
	}
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says("2 documents")
	for _, id := range []string{".", ".."} {
		c.open("#/doc/pond/" + id)
		c.says("cannot make a request for the name")
	}
	c.open("#/db/..")
	c.says("cannot make a request for the name")
	s.call("GET", "/pond", "", 200)
}

// The console offers an account what the server grants it, and shows the refusal of the rest.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.account("ada", "secret")
	for name, security := range map[string]string{
		"open":    `{"admins":{"names":[]},"members":{"names":[],"roles":[]}}`,
		"members": `{"admins":{"names":[]},"members":{"names":["ada"],"roles":[]}}`,
		"private": `{"admins":{"names":[]},"members":{"names":["nobody"],"roles":[]}}`,
	} {
		s.call("PUT", "/"+name, "", 201)
		s.call("PUT", "/"+name+"/_security", security, 200)
		s.call("PUT", "/"+name+"/one", `{}`, 201)
	}
	c := newScreen(t, s)
	c.open("#/db/open") // open to all
	c.says("1 document")
	for _, text := range []string{"Delete database", "Log out"} {
		if eval[bool](c, "document.body.innerText.includes("+quote(text)+")") {
			t.Errorf("nobody is logged in, and it shows %q", text)
		}
	}
	c.open("#/db/members")
	c.logIn("ada", "secret")
	c.says("1 document")
	c.open("#/db/private")
	c.says("You are not allowed to access this db.")
	c.open("#/")
	c.says("You are not a server admin.")
	if eval[bool](c, `document.querySelector("dialog") !== null`) {
		t.Error("an account that may not do something is asked to log in again")
	}
	c.shot("refused")
	c.accessible()
}

// Names and contents that look like programs, or are written in another direction, are shown as they are.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	const script = `<img src=x onerror="window.ran = true"><script>window.ran = true</script>`
	ids := []string{script, "a/b?c#d%2F&e", "\u202egnp.exe", "_design/a/b", "مرحبا", strings.Repeat("x", 10_000), "100%", "{{7*7}}"}
	for _, id := range ids {
		s.call("POST", "/pond", fmt.Sprintf(`{"_id":%s,"text":%s}`, quote(id), quote(script)), 201)
	}
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says(fmt.Sprintf("%d documents", len(ids)))
	c.shot("list")
	c.says(script)
	c.says(`\u202egnp.exe`)
	c.accessible()
	for _, id := range ids {
		c.open("#/doc/pond/" + url.PathEscape(id))
		shown := strings.ReplaceAll(id, "\u202e", `\u202e`)
		c.until("document.title.startsWith(" + quote(shown[:min(len(shown), 10)]) + ")")
		if text := c.editorText(); !strings.Contains(text, `"_id": `) {
			t.Errorf("%.40q: %s", id, text)
		}
		if eval[bool](c, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%.40q makes the page wider than the window", id)
		}
	}
	c.shot("document")
	if eval[bool](c, `"ran" in window`) {
		t.Error("a script of a document ran")
	}
}

// A database of many pages is read forwards, from an id on, and back by the browser's own button.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.call("PUT", "/pond", "", 201)
	var docs []string
	for i := range 120 {
		docs = append(docs, fmt.Sprintf(`{"_id":"doc-%03d"}`, i))
	}
	s.call("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`, 201)
	for i := range 60 {
		s.call("PUT", fmt.Sprintf("/other-%02d", i), "", 201)
	}
	c := newScreen(t, s)
	c.open("#/db/pond")
	c.logIn("adm", "pass")
	c.says("doc-049")
	c.press("Next page")
	c.says("doc-099")
	c.press("Next page")
	c.says("doc-119")
	c.until(`![...document.querySelectorAll("a")].some((a) => a.innerText === "Next page")`)
	c.run("back", chromedp.NavigateBack())
	c.says("doc-050")
	c.fill("Documents from this id on", "doc-11")
	c.exec("enter", `document.querySelector("form[role=search]").requestSubmit()`)
	c.says("doc-110")
	c.until(`!document.body.innerText.includes("doc-109")`)
	c.open("#/")
	c.says("other-46")
	c.shot("databases")
	c.accessible()
	c.press("Next page")
	c.says("pond")
	c.open("#/")
	c.fill("Databases whose names begin with", "po")
	c.until(`document.querySelectorAll("tbody tr").length === 1`)
	if hash := eval[string](c, "location.hash"); hash != "#/?name=po" {
		t.Errorf("the view's URL is %s", hash)
	}
}

// The first screen is there at once, and then the console is silent.
func TestFirstScreen(t *testing.T) {
	s := newServer(t)
	c := newScreen(t, s)
	c.open("")
	c.says("Password")
	type figures struct {
		Shown float64
		Bytes int
		Count int
	}
	const read = `({
		Shown: performance.getEntriesByName("first-contentful-paint")[0].startTime,
		Bytes: [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].reduce((n, e) => n + e.transferSize, 0),
		Count: performance.getEntriesByType("resource").length,
	})`
	c.until(`performance.getEntriesByName("first-contentful-paint").length === 1`)
	first := eval[figures](c, read)
	t.Logf("first contentful paint after %.0f ms, %d bytes in %d requests", first.Shown, first.Bytes, first.Count)
	if first.Bytes > 40_000 {
		t.Errorf("%d bytes", first.Bytes)
	}
	c.logIn("adm", "pass")
	c.says("_replicator")
	before := eval[figures](c, read)
	idle := eval[int](c, `new Promise((done) => setTimeout(() => done(performance.getEntriesByType("resource").length), 3000))`)
	if idle != before.Count {
		t.Errorf("%d requests while nobody does anything", idle-before.Count)
	}
}
