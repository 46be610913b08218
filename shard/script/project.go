package script

import (
	"bytes"
	"encoding/json"
)

// documentID is the id of a document, for the log.
func documentID(doc []byte) string {
	var d struct {
		ID string `json:"_id"`
	}
	if json.NewDecoder(bytes.NewReader(doc)).Decode(&d) != nil {
		return ""
	}
	return bounded(d.ID)
}
