// Package analysis makes tokens of text, as the analyzers of CouchDB's full-text search
// do: for what is indexed and for what is searched (spec/search.md section 7). An
// Analyzer says how, a Stream does it, a token at a time and without allocations of its
// own; Fields says which analyzer a field has.
//
// What is ours and why:
//
//   - The tokenizers. The words of UAX #29 come from a table of classes and a loop of our
//     own (class.go, standard.go), because indexing a large database passes hundreds
//     of megabytes through it, and bleve's tokenizer makes a list of tokens with an
//     allocation for each. Nor does it have Lucene's e-mail and classic grammars.
//   - Pairs of Chinese, Japanese and Korean characters: bleve's filter works on a list.
//   - Light stemmers of Bulgarian and Czech, and the folding of Greek, which bleve does
//     not have.
//
// What is bleve's: lists of stop words, light and Snowball stemmers, Polish, elision,
// normalisation of Arabic, Persian, Hindi and German, the possessive, Porter's stemmer,
// folding to ASCII and of widths.
//
// Where it differs from CouchDB: there is no stemmer for Armenian, Basque, Catalan,
// Galician, Greek, Indonesian and Latvian, and no list of stop words for Latvian; brazilian
// stems as portuguese does; chinese, japanese and thai are pairs of characters, where
// CouchDB splits by a model or a dictionary. The hosts of URLs without a scheme that
// email takes as one token end in a country's or one of the old generic domains.
//
// The package is pure.
package analysis
