package clone

import (
	"errors"

	"divan/storage"
	"divan/storage/doc"
)

const (
	// ingestBytes is from when on a content goes into the target's files at once,
	// not through its log.
	ingestBytes = 1 << 20
	// docBytes is how much a document may add to a step with smaller contents;
	// those beyond go into files as well.
	docBytes = 4 << 20
)

// copyContents copies the contents of attachments that the target does not have.
func (r *run) copyContents(d *storage.StoredDoc, atts []doc.Attachment) error {
	done := make(map[[16]byte]struct{}, len(atts))
	for i := range atts {
		a := &atts[i]
		if _, again := done[a.Key]; again {
			continue
		}
		done[a.Key] = struct{}{}
		has, err := !r.empty, error(nil)
		if has {
			has, err = r.Target.Reader().HasContent(d.ID, a.Key)
		}
		switch {
		case err != nil:
			return err
		case has:
			d.Kept = append(d.Kept, a.Key)
		case a.StoredLength >= ingestBytes || r.step.bytes >= docBytes:
			err = r.ingest(d.ID, a.Key)
		default:
			err = r.copyContent(d.ID, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyContent adds a content to the step.
func (r *run) copyContent(id string, a *doc.Attachment) error {
	data := make([]byte, 0, a.StoredLength)
	chunks := 0
	err := r.Source.Content(id, a.Key, func(chunk []byte) error {
		data = append(data, chunk...)
		chunks++
		return nil
	})
	if err == nil && chunks > 0 {
		r.step.contents = append(r.step.contents, content{id: id, key: a.Key, data: data})
		r.step.bytes += len(data)
	}
	return err
}

// ingest has the target take a content as an upload, which the document claims.
func (r *run) ingest(id string, key [16]byte) error {
	var w *storage.AttachmentWriter
	err := r.Source.Content(id, key, func(chunk []byte) error {
		err := r.pace.wait(r.ctx, len(chunk))
		if err != nil {
			return err
		}
		if w == nil {
			if w, err = r.Target.NewAttachment(id, key); err != nil {
				return err
			}
		}
		_, err = w.Write(chunk)
		return err
	})
	switch {
	case w == nil:
		return err
	case err != nil:
		return errors.Join(err, w.Abort())
	default:
		return w.Close()
	}
}
