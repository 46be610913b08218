// Package indexes keeps the indexes that the design documents of a database want, of whatever
// type: they are brought up to date in the background after writes, built in copies that are
// made, and removed when no design document wants them any more.
package indexes
