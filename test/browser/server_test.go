package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	c.fill("Target: database", "http://"+s.host+"/lake")
	c.exec("choose", `for (const n of ["create", "continuous"]) document.querySelector("input[name=" + n + "]").click();
		document.querySelector("summary").click()`)
	c.fill("Id of the document", "to-the-lake")
	c.exec("selector", `const f = document.querySelector("textarea[name=selector]"); f.value = "[]"`)
	c.shot("form")
	c.accessible()
	c.press("Start replication")
	c.says("Selector: this is not a JSON object.")
	c.exec("selector", `const f = document.querySelector("textarea[name=selector]"); f.value = '{"legs":{"$gt":3}}'; f.dispatchEvent(new Event("input", { bubbles: true }))`)
	c.run("reload", chromedp.Reload())
	c.until(`document.querySelector("textarea[name=selector]")?.value === '{"legs":{"$gt":3}}'`)
	c.fill("Source: password", "pass") // no draft keeps it
	c.fill("Target: password", "pass")
	c.fill("Target: account", "adm")
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

// A password in a URL goes where no view shows it.
func TestReplicationURLWithPassword(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/replications")
	c.says("No document")
	c.open("#/replicate?source=pond")
	c.fill("Source: account", "adm")
	c.fill("Source: password", "pa/ss")
	c.fill("Target: database", "http://adm:pa%2Fss@"+s.host+"/lake")
	c.exec("more", `document.querySelector("summary").click()`)
	c.fill("Id of the document", "moved")
	c.press("Start replication")
	c.says("moved")
	doc := s.call("GET", "/_replicator/moved", "", 200)
	want := `{"auth":{"basic":{"password":"pa/ss","username":"adm"}},"url":"http://` + s.host
	if got := quote(doc["source"]); got != want+`/pond"}` {
		t.Errorf("the source is %s", got)
	}
	if got := quote(doc["target"]); got != want+`/lake"}` {
		t.Errorf("the target is %s", got)
	}
}

// No view of the server makes the page wider than the window of a telephone.
func TestNarrowServerViews(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/tasks")
	s.call("PUT", "/pond", "", 201)
	s.account("somebody-with-a-long-name-that-does-not-fit", "secret")
	s.call("PUT", "/_replicator/long", `{"source":"http://127.0.0.1:1/`+strings.Repeat("long", 30)+`","target":"http://127.0.0.1:1/pond"}`, 201)
	c.says("Log out")
	c.run("narrow", command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1}))
	for view, text := range map[string]string{
		"users": "somebody", "replications": "long", "replicate": "Start replication", "tasks": "Active tasks", "configuration": "[chttpd]",
		"cluster": "Resharding", "figures": "Newest values", "security/pond": "Save permissions", "shards/pond": "Split …",
	} {
		c.open("#/" + view)
		c.says(text)
		c.shot(strings.ReplaceAll(view, "/", "-"))
		if eval[bool](c, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s is wider than the window", view)
		}
	}
	c.accessible()
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

// A user who is no administrator is told the server's refusal, and is not asked again and
// again.
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

// Permissions are told in words, changed, and keep what else the security object has.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/users")
	c.says("There are no accounts")
	s.call("PUT", "/pond", "", 201)
	c.open("#/security/pond")
	c.says("Only server administrators may read and write documents.")
	s.call("PUT", "/pond/_security", `{"other":12345678901234567890,"members":{"names":["ada"],"roles":["_admin"]}}`, 200)
	c.run("reload", chromedp.Reload())
	c.says("The account ada and server administrators may read and write documents.")
	c.fill("Add to Members: roles", "frogs")
	c.says("accounts with the role frogs")
	c.says("Not saved")
	c.press("Save permissions")
	c.until(`!document.body.innerText.includes("When saved:")`)
	c.fill("Add to Administrators: accounts", "zoe")
	c.run("enter", enter())
	c.press("Save permissions")
	c.until(`!document.body.innerText.includes("When saved:")`)
	c.says("The account zoe and server administrators may also change")
	c.shot("permissions")
	c.accessible()
	if got := quote(s.call("GET", "/pond/_security", "", 200)); got !=
		`{"admins":{"names":["zoe"],"roles":[]},"members":{"names":["ada"],"roles":["_admin","frogs"]},"other":12345678901234567890}` {
		t.Errorf("stored: %s", got)
	}
	s.call("PUT", "/pond/_security", `{}`, 200)
	c.exec("remove", `document.querySelector("[aria-label='Remove frogs']").click()`)
	c.press("Save permissions")
	c.says("Somebody else has changed these permissions meanwhile.")
	c.run("reload", chromedp.Reload())
	c.says("Everybody may read and write documents, even without an account")
	s.account("ada", "secret")
	c.press("Log out")
	c.press("Log in")
	c.logIn("ada", "secret")
	c.says("Log out")
	c.fill("Add to Members: accounts", "ada")
	c.press("Save permissions")
	c.says("You are not a db or server admin.")
}

// Accounts are made, get other roles and passwords, and are deleted.
func TestUsers(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/users")
	c.says("There are no accounts")
	c.press("New account")
	c.fill("Name", "ada")
	c.fill("Password", "secret")
	c.fill("Add to Roles", "frogs")
	c.accessible()
	c.press("Create")
	c.until(`document.querySelector("dialog") === null && document.querySelector("tbody")?.innerText.includes("frogs")`)
	s.call("PUT", "/_users/org.couchdb.user:bob", `{"name":"bob","password":"x","roles":[],"type":"user","n":12345678901234567890}`, 201)
	c.run("reload", chromedp.Reload())
	c.says("bob")
	c.shot("users")
	c.accessible()
	press := func(label string) {
		t.Helper()
		c.until(fmt.Sprintf("document.querySelector(%q) !== null", "[aria-label='"+label+"']"))
		c.exec(label, fmt.Sprintf("document.querySelector(%q).click()", "[aria-label='"+label+"']"))
	}
	press("Roles of bob")
	c.fill("Add to Roles", "newts")
	c.press("Save roles")
	c.until(`document.querySelector("tbody")?.innerText.includes("newts")`)
	press("Password of bob")
	c.fill("Password", "new")
	c.press("Change password")
	c.until(`document.querySelector("dialog") === null`)
	s.call("POST", "/_session", `{"name":"bob","password":"new"}`, 200)
	if doc := s.call("GET", "/_users/org.couchdb.user:bob", "", 200); quote(doc["n"]) != "12345678901234567890" || quote(doc["roles"]) != `["newts"]` {
		t.Errorf("stored: %v", doc)
	}
	c.run("reload", chromedp.Reload()) // with the revision that the password has made
	press("Delete of bob")
	c.press("Delete")
	c.until(`!document.body.innerText.includes("bob")`)
	c.press("New administrator")
	c.fill("Name", "zoe")
	c.fill("Password", "apple")
	c.accessible()
	c.press("Create")
	c.says("zoe")
	press("Remove zoe")
	c.says("is no server administrator any more.")
	c.press("Remove")
	c.until(`document.querySelector("dialog") === null && !document.body.innerText.includes("zoe")`)
	press("Remove adm")
	c.press("Remove")
	c.says("The last server administrator cannot be deleted")
	c.press("Cancel")
	s.call("PUT", "/people", "", 201)
	s.call("PUT", "/_node/_local/_config/chttpd_auth/authentication_db", `"people"`, 200)
	c.run("reload", chromedp.Reload())
	c.press("New account")
	c.fill("Name", "eve")
	c.fill("Password", "secret")
	c.press("Create")
	c.until(`document.querySelector("dialog") === null`)
	if eve := s.call("GET", "/people/org.couchdb.user:eve", "", 200); eve["derived_key"] == nil || eve["password"] != nil {
		t.Errorf("stored: %v", eve)
	}
}

// A setting is found by its meaning, changed, refused, and reset; secrets are not shown.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/configuration")
	c.says("[chttpd_auth]")
	c.shot("all")
	c.accessible()
	secret := s.call("GET", "/_node/_local/_config/chttpd_auth", "", 200)["secret"]
	if eval[bool](c, "document.documentElement.innerHTML.includes("+quote(secret)+")") {
		t.Error("the secret is shown")
	}
	c.fill("Search settings", "threshold failures")
	c.until(`document.querySelectorAll("tbody tr").length === 1 && document.body.innerText.includes("Failures of a user")`)
	c.exec("change", `document.querySelector("[aria-label='Change threshold']").click()`)
	c.fill("Value", "many")
	c.press("Set")
	c.says("the value should be an integer")
	c.shot("change")
	c.accessible()
	c.fill("Value", "7")
	c.press("Set")
	c.says("set here, for this node")
	c.says("[chttpd_auth_lockout] threshold is set.")
	if value := s.call("GET", "/_node/_local/_config/chttpd_auth_lockout", "", 200)["threshold"]; value != "7" {
		t.Errorf("it is %v", value)
	}
	c.open("#/configuration?changed=true")
	c.says("threshold")
	c.exec("change", `document.querySelector("[aria-label='Change threshold']").click()`)
	c.press("Reset to default")
	c.says("[chttpd_auth_lockout] threshold is reset.")
	if value, set := s.call("GET", "/_node/_local/_config/chttpd_auth_lockout", "", 200)["threshold"]; set {
		t.Errorf("it is still %v", value)
	}
	c.press("Other key …")
	c.fill("Section", "own")
	c.fill("Key", "<b>")
	c.fill("Value", "1")
	c.press("Set")
	c.says("[own]")
	c.accessible()
}
