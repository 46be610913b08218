// Package analysis makes tokens of text, as the analyzers of CouchDB's full-text search
// do: for what is indexed and for what is searched (spec/search.md section 7). An
// Analyzer says how, a Stream does it, a token at a time and without allocations of its
// own; Fields says which analyzer a field has.
//
// What is ours and why:
//
//   - The tokenizers. The words of UAX #29 come from a table of classes and a loop of our
//     own (class.go, standard.go), because indexing a large database passes hundreds
//     of megabytes through it, and those of libraries make a list of tokens with an
//     allocation for each.
//   - Pairs of Chinese, Japanese and Korean characters, for the same reason.
//   - Light stemmers, Porter's stemmer and the normalisation of letters: written by the
//     publications that they are from, with Lucene's limits, as rules in tables
//     (change.go). The library that has them, bleve, is a whole search engine with a dozen
//     modules; testdata/words.txt has what its analyzers made of words.
//
// Data: lists of stop words (stopwords), characters that are folded to ASCII
// (folding.txt), letters of Indic scripts (indic.txt), and the table of the Polish
// stemmer (polish.tbl.gz) are those of Lucene. Snowball's stemmers are a library.
//
// Where it differs from CouchDB: there is no stemmer for Armenian, Basque, Catalan,
// Galician, Greek, Indonesian and Latvian, and no list of stop words for Latvian; brazilian
// stems as portuguese does; chinese, japanese and thai are pairs of characters, where
// CouchDB splits by a model or a dictionary. The hosts of URLs without a scheme that
// email takes as one token end in a country's or one of the old generic domains.
//
// The package is pure.
package analysis
