// Package mango serves queries by selector: _find, _explain, and the indexes behind
// them, _index (api.md section 14).
package mango
