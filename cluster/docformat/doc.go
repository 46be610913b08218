// Package docformat is the formats in which documents travel to and from clients
// and other servers: JSON, with the content of attachments in base64 or without
// it, multipart/related and multipart/mixed. It knows nothing of HTTP; whoever
// serves documents or replicates them uses it.
package docformat
