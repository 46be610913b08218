package analysis

import (
	"embed"
	"strings"
)

// stopwords holds a list of stop words for each language: those of CouchDB's analyzers,
// which are Lucene's. The first line of a file names its source and its license.
//
//go:embed stopwords/*.txt
var stopwords embed.FS

// stopList sets the stop words of a language.
func (a *Analyzer) stopList(language string) {
	text, err := stopwords.ReadFile("stopwords/" + language + ".txt")
	if err != nil {
		return // never, of a language that is named in this package
	}
	_, list, _ := strings.Cut(string(text), "\n")
	a.setStop(strings.Fields(list))
}
