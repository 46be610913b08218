package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// maxRefusal is how much of an answer that says no is read, in bytes.
const maxRefusal = 64 << 10

// errorMembers returns the two texts of an answer that says no; empty for what
// is no JSON.
func errorMembers(text []byte) (name, reason string) {
	_ = doc.EachMember(text, func(member string, value []byte) error { // a proxy's page has no members
		switch member {
		case "error":
			name, _ = doc.Unquote(value)
		case "reason":
			reason, _ = doc.Unquote(value)
		}
		return nil
	})
	return shortened(name), shortened(reason)
}

// maxReason is how much of a text of a server is kept, in bytes: histories of jobs and
// documents have it, many times.
const maxReason = 1 << 10

// shortened is a text of a server as it is kept.
func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// refusal is the error that an answer stands for; it closes the answer.
func (c *client) refusal(a *answer) error {
	text, err := io.ReadAll(io.LimitReader(a.Body, maxRefusal))
	if err = errors.Join(err, a.Body.Close()); err != nil && len(text) == 0 {
		text = nil // the status says enough
	}
	name, reason := errorMembers(text)
	if reason == "" {
		reason = http.StatusText(a.status)
	}
	if a.status == http.StatusUnauthorized && c.session != nil {
		if why := c.session.refusal(); why != "" {
			return endpoint.AuthError("session of " + c.session.user + " at " + c.session.root + "_session: " + why)
		}
	}
	return &fault.Error{
		Kind: kindOf(a.status), Code: name, Reason: reason,
		Err: fmt.Errorf("%s answered %d", c.url, a.status),
	}
}

// kindOf is the kind of error that a status stands for.
func kindOf(status int) fault.Kind {
	switch status {
	case http.StatusUnauthorized:
		return fault.Unauthorized
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Conflict
	case http.StatusPreconditionFailed:
		return fault.MissingStub
	case http.StatusRequestEntityTooLarge:
		return fault.RequestTooLarge
	case http.StatusUnsupportedMediaType:
		return fault.BadContentType
	case http.StatusRequestURITooLong:
		return fault.URITooLong
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return fault.Unavailable
	}
	if http.StatusBadRequest <= status && status < http.StatusInternalServerError {
		return fault.BadRequest
	}
	return fault.Unavailable
}

// kindOfDoc is the kind of error that a name stands for which an answer gives
// for one of many documents.
func kindOfDoc(name string) fault.Kind {
	switch name {
	case "unauthorized":
		return fault.Unauthorized
	case "forbidden":
		return fault.Forbidden
	case "missing_stub":
		return fault.MissingStub
	case "document_too_large":
		return fault.DocumentTooLarge
	case "attachment_too_large":
		return fault.AttachmentTooLarge
	case "doc_validation":
		return fault.DocValidation
	case "illegal_docid":
		return fault.IllegalDocID
	case "illegal_partition", "partition_overflow":
		return fault.IllegalPartition
	case "invalid_design_doc":
		return fault.InvalidDesignDoc
	case "compilation_error":
		return fault.CompilationError
	case "bad_request", "bad_content_type", "invalid_attachment", "bad_attachment":
		return fault.BadRequest
	}
	return fault.Internal // it may go another time: the run fails, and nothing is left out
}
