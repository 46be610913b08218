// Package docformat reads and writes the formats in which documents travel to and from clients and
// other servers: JSON, with the content of attachments in base64 or without it, multipart/related
// and multipart/mixed. It knows nothing of HTTP; packages that serve or replicate documents use it.
package docformat
