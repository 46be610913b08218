package tidy

import (
	"fmt"
	"regexp"
)

// A comment names its subject. pronouns stand in for a noun that the reader has to guess;
// riddles have a copula and a pronoun where a verb would say it.
var (
	pronouns = regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Ee]verybody|[Aa]nybody|[Ww]hatever)\b`)
	riddles  = regexp.MustCompile(`\b(is|are)\s+(what|who)\b`)
)

// prose returns the places of comments that do not name their subject.
func (t *tree) prose() []string {
	var out []string
	for _, f := range t.files {
		for _, group := range f.ast.Comments {
			found := pronouns.FindString(group.Text())
			if found == "" && !f.test() {
				found = riddles.FindString(group.Text())
			}
			if found != "" {
				out = append(out, fmt.Sprintf("%s:%d: %q", f.path, t.fset.Position(group.Pos()).Line, found))
			}
		}
	}
	return out
}
