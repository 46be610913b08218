// Package divan knows which release its source is of.
package divan

import (
	_ "embed" // of the file
	"strings"
)

//go:embed VERSION
var version string

// Release returns the release that this source is, or becomes: the content of the file VERSION.
func Release() string { return strings.TrimSpace(version) }
