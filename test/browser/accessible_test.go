package browser

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/chromedp/cdproto/emulation"

	"divan/test/npm"
)

// axe is the program that looks for what keeps people with a disability out.
var axe = sync.OnceValues(func() (string, error) {
	modules, err := npm.Fetch(context.Background(), "../../httpapi/console/web/package-lock.json")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	return string(text), err
})

// violation is a rule that the page breaks.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// accessible looks at what is shown, in dark and light colors, and that the page kept to its policy.
func (c *screen) accessible() {
	c.t.Helper()
	program, err := axe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.exec("load axe", "if (!window.axe) { "+program+" }")
	for _, scheme := range []string{"dark", "light"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		c.run(scheme, command(emulation.SetEmulatedMedia, media))
		for _, v := range eval[[]violation](c, `axe.run().then((r) => r.violations)`) {
			c.t.Errorf("%s: %s: %s", scheme, v.ID, v.Help)
			for _, n := range v.Nodes {
				c.t.Logf("%s\n%s", n.HTML, n.FailureSummary)
			}
		}
		if scheme == "dark" {
			c.shot("dark")
		}
	}
	c.keepsPolicy()
}

// keepsPolicy wants that the page tried nothing that its Content-Security-Policy forbids.
func (c *screen) keepsPolicy() {
	c.t.Helper()
	for _, v := range eval[[]string](c, "window.violations ?? []") {
		c.t.Errorf("against the policy: %s", v)
	}
}
