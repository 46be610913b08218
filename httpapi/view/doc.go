// Package view serves views of design documents: their rows, one query or several
// in a request, of a database or of a partition; what is told about their indexes,
// and the upkeep of those. Parameters are those of package listing.
package view
