package reduce

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestConsoleOffersAll: the web console offers each built-in function that has one name, and no
// other.
func TestConsoleOffersAll(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "httpapi", "console", "web", "src", "viewsource.ts"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := bytes.Cut(source, []byte("export const builtIn = ["))
	list, _, ends := bytes.Cut(list, []byte("]"))
	if !found || !ends {
		t.Fatal("the console has no list of built-in functions")
	}
	offered := map[string]bool{}
	for _, name := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(list, -1) {
		offered[string(name[1])] = true
	}
	for _, f := range builtins(DefaultLimit) {
		if !offered[f.name] {
			t.Errorf("%s is not offered", f.name)
		}
		delete(offered, f.name)
	}
	for name := range offered {
		t.Errorf("%s is offered and is none", name)
	}
}
