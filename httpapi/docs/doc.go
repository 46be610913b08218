// Package docs serves documents and their attachments, one at a time and many at
// once: GET, PUT, POST, DELETE and COPY, _bulk_docs and _bulk_get.
package docs
