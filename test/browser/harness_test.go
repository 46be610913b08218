package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/zap"

	"divan/cmd/divan/node"
)

// patience bounds each step of a test.
const patience = 30 * time.Second

// server is a node of this process.
type server struct {
	t      *testing.T
	host   string // HOST:PORT
	data   string
	member func(*node.Config) // makes it part of a cluster; nil: it stands alone
	cancel context.CancelFunc
	done   chan error
}

func newServer(t *testing.T) *server {
	t.Helper()
	browserProgram(t) // no node is started for a test that is skipped
	s := &server{t: t, host: "127.0.0.1:0", data: t.TempDir()}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// start runs the node, on the port that it had before.
func (s *server) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n, host, err := s.newNode(ctx, s.host)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	s.host = host
	ready := n.Ready()
	s.cancel, s.done = cancel, make(chan error, 1)
	go func() {
		err := n.Run(ctx)
		for errors.Is(err, node.ErrRestart) { // it was taken into a cluster
			if n, _, err = s.newNode(ctx, host); err == nil {
				err = n.Run(ctx)
			}
		}
		s.done <- err
	}()
	select {
	case <-ready:
	case err := <-s.done:
		s.t.Fatalf("the node did not start: %v", err)
	}
}

// newNode makes a node that listens on an address, and returns that with its port.
func (s *server) newNode(ctx context.Context, on string) (n *node.Node, host string, err error) {
	listener, err := net.Listen("tcp", on)
	if err != nil {
		return nil, "", err
	}
	cfg := node.Config{
		DataDir: s.data, Listener: listener, Admin: "adm:pass", Version: "test", Logger: zap.NewNop(),
		Environ: []string{"DIVAN_CHTTPD_AUTH__ITERATIONS=10"},
	}
	if s.member != nil {
		s.member(&cfg)
	}
	n, err = node.New(ctx, cfg)
	return n, listener.Addr().String(), err
}

// stop ends the node; a second time it does nothing.
func (s *server) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.cancel = nil
	if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
		s.t.Errorf("the node stopped with: %v", err)
	}
}

// call makes a request as the administrator, wants a status, and returns the answer.
func (s *server) call(method, path, body string, want int) map[string]any {
	s.t.Helper()
	return s.callAs(method, path, "application/json", body, want)
}

// callAs is call with a body of another type.
func (s *server) callAs(method, path, contentType, body string, want int) map[string]any {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://adm:pass@"+s.host+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read
	if err != nil || answer.StatusCode != want {
		s.t.Fatalf("%s %s: %s %v, want %d: %s", method, path, answer.Status, err, want, text)
	}
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&out) // lists are not looked at
	return out
}

// browserProgram returns the browser of this machine. The test is skipped where no browser is asked for.
func browserProgram(t *testing.T) string {
	t.Helper()
	if os.Getenv("DIVAN_REQUIRE_BROWSER") == "" {
		t.Skip("./dev browser runs this, and installs Chromium")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium")
	return ""
}

// newEditing is a server with a document, whose revision is returned, and the document in the console.
func newEditing(t *testing.T) (s *server, c *screen, rev any) {
	t.Helper()
	s = newServer(t)
	s.call("PUT", "/pond", "", 201)
	rev = s.call("PUT", "/pond/frog", `{"legs":4}`, 201)["rev"]
	c = newScreen(t, s)
	c.open("#/doc/pond/frog")
	c.logIn("adm", "pass")
	return s, c, rev
}

// screen is a page of a browser with a session of its own. What goes wrong in there fails the test.
type screen struct {
	t    *testing.T
	s    *server
	ctx  context.Context
	mu   sync.Mutex
	seen []string // errors in the console of the browser
}

// watch is run in each page before its own scripts.
const watch = `window.violations = [];
addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber));`

func newScreen(t *testing.T, s *server) *screen {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(browserProgram(t)), chromedp.Headless,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.NoSandbox, // a container may have no namespaces for it
		chromedp.WindowSize(1280, 800), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	c := &screen{t: t, s: s, ctx: ctx}
	t.Cleanup(func() {
		c.wantNoErrors()
		cancelBrowser()
		cancel()
	})
	if err := chromedp.Listen(ctx, c.listen); err != nil { // starts the browser
		t.Fatal(err)
	}
	c.run("turn the log on", command(cdplog.Enable, cdp.Empty{}))
	c.run("watch", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch}))
	return c
}

// command is an action that makes one call of the browser's protocol.
func command[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

// listen keeps what the browser complains of. That requests are refused is for the views to tell.
func (c *screen) listen(event any) {
	note := func(format string, args ...any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		note("exception: %v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				note("console: %s", a.Value)
			}
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			note("log: %s %s", e.Entry.Source, e.Entry.Text)
		}
	}
}

func (c *screen) wantNoErrors() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.seen {
		c.t.Errorf("in the browser: %s", text)
	}
}

// run does something in the page.
func (c *screen) run(what string, actions ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	_ = do(c, what, chromedp.Steps(actions...))
}

// do does something in the page and returns what comes of it.
func do[T any](c *screen, what string, action chromedp.Action[T]) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		late, cancel := context.WithTimeout(c.ctx, patience)
		defer cancel()
		text, _ := chromedp.Run(late, chromedp.Evaluate[string](`document.body.innerText`))
		c.shot("failed")
		c.t.Fatalf("%s: %v; the page says:\n%s", what, err, text)
	}
	return out
}

// open shows a view.
func (c *screen) open(hash string) {
	c.t.Helper()
	c.run("open "+hash, chromedp.Navigate("http://"+c.s.host+"/_utils/"+hash))
}

// eval returns what an expression of JavaScript says, or the promise that it is.
func eval[T any](c *screen, expression string) T {
	c.t.Helper()
	return do(c, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// exec runs statements of JavaScript.
func (c *screen) exec(what, statements string) {
	c.t.Helper()
	_ = do(c, what, chromedp.Evaluate[bool]("{ "+statements+" }; true"))
}

// until waits until an expression of JavaScript is true. A page that is loaded again meanwhile
// takes what waits in it along.
func (c *screen) until(expression string) {
	c.t.Helper()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience))
	do(c, "until "+expression, func(ctx context.Context, t *chromedp.Target) (bool, error) {
		for {
			ok, err := poll(ctx, t)
			if err == nil || !strings.Contains(err.Error(), "Cannot find context with specified id") {
				return ok, err
			}
		}
	})
}

// says waits until the page shows a text.
func (c *screen) says(text string) {
	c.t.Helper()
	quoted, _ := json.Marshal(text)
	c.until("document.body.innerText.includes(" + string(quoted) + ")")
}

// fill writes into the field with a label.
func (c *screen) fill(label, text string) {
	c.t.Helper()
	c.until(fmt.Sprintf(`(() => {
		const is = (e) => (e.ariaLabel ?? e.labels?.[0]?.innerText ?? "").trim().startsWith(%q);
		const field = [...document.querySelectorAll("input")].findLast(is);
		field?.focus();
		field?.select();
		return field !== undefined && document.activeElement === field;
	})()`, label))
	c.run("fill "+label, insert(text))
}

// press presses the button, or follows the link, that shows a text.
func (c *screen) press(text string) {
	c.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button:enabled, a")].findLast((e) => e.innerText.trim() === %q)`, text)
	c.until(find + " !== undefined")
	c.exec("press "+text, find+".click()")
}

// write replaces the text in the editor, as keys would.
func (c *screen) write(text string) {
	c.t.Helper()
	const content = `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-content")`
	c.until(content + " != null")
	c.exec("write", content+".focus()")
	c.run("write", key("a", 2), insert(text))
}

// editorText returns what the editor shows of a text that is not long.
func (c *screen) editorText() string {
	c.t.Helper()
	c.until(`document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-line") != null`)
	return eval[string](c, `[...document.querySelector(".editor").shadowRoot.querySelectorAll(".cm-line")].map((l) => l.textContent).join("\n")`)
}

// logIn fills in the form.
func (c *screen) logIn(name, password string) {
	c.t.Helper()
	c.says("Password")
	c.fill("Name", name)
	c.fill("Password", password)
	c.press("Log in")
}

// shot takes a picture when pictures are wanted.
func (c *screen) shot(name string) {
	c.t.Helper()
	dir := os.Getenv("DIVAN_SCREENSHOTS")
	if dir == "" {
		return
	}
	late, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(late, chromedp.CaptureScreenshot())
	if err != nil {
		c.t.Error(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.t.Name(), "/", "-")+"-"+name+".png"), picture, 0o600); err != nil {
		c.t.Error(err)
	}
}

// account makes a user without roles.
func (s *server) account(name, password string) {
	s.t.Helper()
	s.call("PUT", "/_users/org.couchdb.user:"+name, fmt.Sprintf(`{"name":%q,"password":%q,"roles":[],"type":"user"}`, name, password), 201)
}
