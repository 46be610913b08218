// Package find answers Mango queries on one copy of a shard: it walks over the
// documents, or over the keys of an index in package view, matches the selector
// against the stored text of each, and gives out the parts that are wanted.
//
// Documents are not decoded, and a body that does not match is not copied: see
// DocScan in package shard, and package query.
package find
