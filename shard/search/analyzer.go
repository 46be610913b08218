package search

// Token is a word of a text, and where it stands among the others.
type Token struct {
	Term     []byte
	Position int
}

// Analyzer makes terms of texts. It is safe for concurrent use.
type Analyzer interface {
	// Tokens appends the tokens of a text, in the order of their positions.
	Tokens(dst []Token, text string) []Token
	// Normalize makes of a word that is not analysed, as one with a wildcard, what can be
	// compared to terms.
	Normalize(text string) string
}
