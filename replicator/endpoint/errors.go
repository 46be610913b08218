package endpoint

import (
	"errors"

	"divan/storage/fault"
	"divan/storage/memory"
)

// The codes of errors that say why a database cannot be opened. POST
// /_replicate answers both with status 500.
const (
	CodeNoDatabase = "db_not_found"
	CodeAuth       = "replication_auth_error"
)

// NoDatabase is the error of a database that is not there; url is its address as a client may see
// it.
func NoDatabase(url string) error {
	return &fault.Error{Kind: fault.NoDatabase, Code: CodeNoDatabase, Reason: "could not open " + url}
}

// Unauthorized is the error of a database that the account may not open or
// create.
func Unauthorized(url string) error {
	return fault.New(fault.Unauthorized, "unauthorized to access or create database "+url)
}

// Forbidden is Unauthorized for a user who is logged in.
func Forbidden(url string) error {
	return fault.New(fault.Forbidden, "forbidden to access or create database "+url)
}

// AuthError is the error of an account that is none: its name or password is
// wrong.
func AuthError(reason string) error {
	return &fault.Error{Kind: fault.Unauthorized, Code: CodeAuth, Reason: reason}
}

// NoMemory is the error of memory.Hold while something is read or kept: err is that of
// Take, what names what there is no memory for.
func NoMemory(what string, err error) error {
	switch {
	case errors.Is(err, memory.ErrFull):
		return fault.Wrap(fault.Unavailable,
			"There is no memory for "+what+" at the moment: replications hold all that [chttpd] max_body_memory leaves to this account.", err)
	case errors.Is(err, memory.ErrNever):
		return fault.Wrap(fault.RequestTooLarge, "There is never enough memory for "+what+" with this [chttpd] max_body_memory.", err)
	}
	return err
}

// MemoryFactor is how many bytes of memory a byte takes that is read: what is made of it
// takes as much again.
const MemoryFactor = 2

// Retryable reports whether the same may work later: the other side could not
// be reached, was silent or overloaded. All attempts that a single request is
// worth have been made.
func Retryable(err error) bool { return fault.RepeatOf(err) == fault.Passing }
