// Package collate puts JSON values in the order of view keys, as bytes whose
// order under bytes.Compare is the order of the values (semantics.md section
// 12.3).
//
// Kinds: null < false < true < numbers < strings < arrays < objects. Numbers compare as in Erlang:
// integers of any size exactly, others as doubles; strings by the root collation of ICU 72 (UCA
// 15), tertiary strength, nothing ignorable shifted, normalization off, as CouchDB asks of ICU;
// arrays item by item and objects member by member, name before value, a prefix first. Strings that
// ICU holds equal get equal keys, so a key cannot be turned back into its value.
//
// The tables (tables.bin.gz) are made from ICU's own data by the programs in
// gen. Version names them: an index that stores keys stores the version too and
// is built anew when it differs. The sort keys are byte-identical to ICU's: a
// test checks that on a sample that ICU computed (testdata/icu.txt), another one,
// where ICU 72 is installed, for every code point and random strings. One
// difference is on purpose: a combining mark that has 64 or more others between
// itself and the character it contracts with does not contract, as a search
// without a bound takes the square of a string's length. No text of a language
// comes near: the stream-safe form of UAX #15 has at most 30 marks in a row.
//
// Input must be valid UTF-8.
//
// AppendRawKey is the other order that a view may ask for, Erlang's order of
// terms. Its keys have marks of their own, so Prefix takes both.
package collate

// Version names the collation: library, and version of the algorithm.
const Version = "icu72.1-uca15.0"
