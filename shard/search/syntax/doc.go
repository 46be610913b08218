// Package syntax reads the text of full-text queries: the language of Lucene's
// query parsers, from text to a small typed tree (spec/search.md 8.1 and 10.3).
//
// There are two dialects. Search is that of _search (the classic parser of Lucene
// 4), Nouveau that of _nouveau (the standard parser of Lucene 9). What differs:
//
//   - Numbers. In Search a bare word that reads as a number is one, in any field,
//     and so are two bounds that do. In Nouveau the field decides, so that the
//     tree holds the text, and Decimal reads it when it is known.
//   - In Search the TO of a range may be left out. Nouveau has f=x, f<x, f<=x, f>x
//     and f>=x, and (a b c)@2: at least two; so @ < > = have to be escaped in words.
//   - In Search a lone + - or ! before white space is a word. In Nouveau it belongs to
//     what follows.
//   - In Nouveau the text of a field or a word may not begin with "fn:": interval
//     functions are refused.
//   - Boosts of a group of one clause replace the one within in Search, and multiply
//     with it in Nouveau.
//   - An AND after a clause of which analysis leaves nothing reaches back to the
//     clause before that in Search, and nowhere in Nouveau (Boolean.Occurs).
//
// In both there is no precedence of operators: each level is a flat list of
// clauses. AND makes the clause after it and the one before it a must, unless it is
// negated; OR says nothing. Hence "a AND b OR c" is "+a +b c".
//
// Words are handed over as they were written, without their escapes. Analysing them,
// and putting patterns and bounds into lower case, is the next step's.
//
// Where it differs from CouchDB on purpose: the words of what is wrong with a text
// are our own, the place is CouchDB's; a backslash in a regular expression or in a quoted
// bound escapes what follows, even a backslash; \u0041 is that character in patterns
// too; a range of words that is open on one side is open, where CouchDB takes the word
// "infinity" for its bound; any white space ends a bound; an empty quoted bound is the
// empty word; what is too long or nested too deeply is refused.
//
// The package is pure.
package syntax
