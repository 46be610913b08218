package browser

import (
	"fmt"
	"strings"
	"testing"
)

// newAdminScreen is a server, and its console at an address, with the administrator logged in.
func newAdminScreen(t *testing.T, hash string) (*server, *screen) {
	t.Helper()
	s := newServer(t)
	c := newScreen(t, s)
	c.open(hash)
	c.logIn("adm", "pass")
	return s, c
}

// A replication is asked for, runs, is seen among the tasks, and is cancelled. Its password is nowhere.
func TestReplications(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/replications")
	c.says("No document asks for a replication.")
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/pond/frog", `{"legs":4}`, 201)
	c.accessible()
	c.press("New replication")
	c.fill("Source: database", "pond")
	c.fill("Source: account", "adm")
	c.fill("Source: password", "pass")
	c.fill("Target: database", "http://adm:pass@"+s.host+"/lake")
	c.exec("choose", `for (const n of ["create", "continuous"]) document.querySelector("input[name=" + n + "]").click();
		document.querySelector("summary").click()`)
	c.fill("Id of the document", "to-the-lake")
	c.exec("selector", `const f = document.querySelector("textarea[name=selector]"); f.value = "[]"`)
	c.shot("form")
	c.accessible()
	c.press("Start replication")
	c.says("Selector: this is not a JSON object.")
	c.exec("selector", `document.querySelector("textarea[name=selector]").value = '{"legs":{"$gt":3}}'`)
	c.press("Start replication")
	c.says("to-the-lake")
	c.says("1 document written")
	c.shot("list")
	c.accessible()
	if eval[bool](c, `document.documentElement.innerHTML.includes(":pass@")`) {
		t.Error("a password is shown")
	}
	if source := s.call("GET", "/_replicator/to-the-lake", "", 200)["source"]; fmt.Sprint(source) !=
		"map[auth:map[basic:map[password:pass username:adm]] url:http://"+s.host+"/pond]" {
		t.Errorf("the source is %v", source)
	}
	s.call("GET", "/lake/frog", "", 200)
	c.open("#/tasks")
	c.says("1 document written")
	c.until(`document.querySelector("progress").value === 100`)
	c.shot("tasks")
	c.accessible()
	c.open("#/replications")
	c.press("Cancel …")
	c.says("What has been written stays in the target.")
	c.accessible()
	c.press("Cancel the replication")
	c.says("No document asks for a replication.")
	s.call("GET", "/_replicator/to-the-lake", "", 404)
}

// What goes wrong with a replication is told, and one without a document is seen and cancelled.
func TestReplicationsThatFail(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/replications")
	c.says("No document")
	s.call("PUT", "/pond", "", 201)
	s.call("PUT", "/_replicator/lost", `{"source":"http://`+s.host+`/nowhere","target":"http://adm:pass@`+s.host+`/pond"}`, 201)
	s.call("PUT", "/lake", "", 201)
	s.call("POST", "/_replicate", `{"source":"pond","target":"lake","continuous":true}`, 202)
	c.says("lost")
	c.until(`document.querySelector("td .failed") !== null`)
	c.says("Without a document")
	c.shot("list")
	c.accessible()
	c.exec("cancel the job", `document.querySelector("section button.danger").click()`)
	c.press("Cancel the replication")
	c.until(`!document.body.innerText.includes("Without a document")`)
}

// Somebody who is no administrator is told what the server says, and is not asked again and again.
func TestServerViewsOfAReader(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.account("ada", "secret")
	c := newScreen(t, s)
	c.open("#/replications")
	c.logIn("ada", "secret")
	for _, view := range []string{"replications", "tasks"} {
		c.open("#/" + view)
		c.says("You are not a server admin.")
		if text := eval[string](c, `document.querySelector("nav[aria-label=Console]").innerText`); strings.Contains(text, "Tasks") {
			t.Errorf("%s: offered: %s", view, text)
		}
	}
	c.accessible()
}
