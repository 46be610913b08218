package shard

// What the parts of a document take in memory beside their text, in bytes.
const (
	docBytes  = 200
	attBytes  = 112
	revBytes  = 56 // with its id, which has 32 characters but in old documents
	infoBytes = revBytes + 16
)

// Size returns about how many bytes of memory the document takes with its path, conflicts and
// attachments' metadata; 0 for nil. The contents of attachments are not part of it.
func (d *Doc) Size() int {
	if d == nil {
		return 0
	}
	n := docBytes + len(d.ID) + len(d.Body)
	n += revBytes * (len(d.Revisions.IDs) + len(d.Conflicts) + len(d.DeletedConflicts))
	n += infoBytes * len(d.RevsInfo)
	for i := range d.Atts {
		n += attBytes + len(d.Atts[i].Name) + len(d.Atts[i].ContentType)
	}
	return n
}
