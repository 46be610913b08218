package tidy

import (
	"os"
	"strings"
	"testing"
)

// required returns the versions that a go.mod file requires, by module.
func required(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(strings.TrimPrefix(line, "require ")); len(fields) > 1 && strings.HasPrefix(fields[1], "v") {
			out[fields[0]] = fields[1]
		}
	}
	return out
}

// TestModulesAgree: the tools try the product out with the dependencies that it is built with.
func TestModulesAgree(t *testing.T) {
	product, tools := required(t, "../../go.mod"), required(t, "../go.mod")
	both := 0
	for module, version := range product {
		if other, ok := tools[module]; ok {
			both++
			if other != version {
				t.Errorf("%s is %s in go.mod and %s in test/go.mod", module, version, other)
			}
		}
	}
	if both < 30 {
		t.Errorf("only %d modules are in both files", both)
	}
}
