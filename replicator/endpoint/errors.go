package endpoint

import (
	"errors"

	"divan/storage/fault"
)

// The codes of errors that say why a database cannot be opened. POST
// /_replicate answers both with status 500.
const (
	CodeNoDatabase = "db_not_found"
	CodeAuth       = "replication_auth_error"
)

// NoDatabase is the error of a database that is not there; url is what a client
// may see of its address.
func NoDatabase(url string) error {
	return &fault.Error{Kind: fault.NoDatabase, Code: CodeNoDatabase, Reason: "could not open " + url}
}

// Unauthorized is the error of a database that the account may not open or
// create.
func Unauthorized(url string) error {
	return fault.New(fault.Unauthorized, "unauthorized to access or create database "+url)
}

// Forbidden is Unauthorized for somebody who is logged in.
func Forbidden(url string) error {
	return fault.New(fault.Forbidden, "forbidden to access or create database "+url)
}

// AuthError is the error of an account that is none: its name or password is
// wrong.
func AuthError(reason string) error {
	return &fault.Error{Kind: fault.Unauthorized, Code: CodeAuth, Reason: reason}
}

// Retryable reports whether the same may work later: the other side could not
// be reached, was silent or overloaded. All attempts that a single request is
// worth have been made.
func Retryable(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	switch f.Kind {
	case fault.Unavailable, fault.Timeout, fault.NodeDown:
		return true
	default:
		return false
	}
}
