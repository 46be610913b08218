// Package search serves full-text search, in both dialects: _search and _nouveau. So far
// it shows what analyzers make of a text; searching itself is still absent.
package search
