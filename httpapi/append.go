package httpapi

import (
	"maps"
	"slices"

	"divan/storage/doc"
)

// appendStrings appends a JSON array of strings.
func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(dst, s)
	}
	return append(dst, ']')
}

// appendTexts appends a JSON object whose values are strings, sorted by name.
func appendTexts(dst []byte, texts map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, name), ':')
		dst = doc.AppendString(dst, texts[name])
	}
	return append(dst, '}')
}
