// Package indexes keeps the indexes of all types that the design documents of a database want: they
// are brought up to date in the background after writes, built in copies that are made, and removed
// when no design document wants them any more.
package indexes
