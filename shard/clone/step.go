package clone

import (
	"slices"
	"strings"

	"divan/storage"
	"divan/storage/doc"
)

// stepBytes is the size of a step, more or less: what is copied at once, and what
// is lost when a clone is interrupted.
const stepBytes = 1 << 20

// stepDocs is how many documents are in a step at most.
const stepDocs = 1024

// Step is one batch of the target.
type Step struct {
	// Design says that a design document is in it.
	Design bool
	// Last says that the result of the step has to be durable before the clone may
	// be relied on.
	Last bool

	run      *run
	filling  *storage.Filling // instead of all that follows
	expected uint64           // the target's sequence before
	seq      uint64           // after
	purgeSeq uint64           // after; 0: as before
	trimmed  uint64           // entries of the purge log up to here are gone in the source
	erased   []string
	purges   []storage.Purge
	docs     []storage.StoredDoc
	contents []content
	bytes    int
	chunk    []byte // memory that is given out
}

// content is a small content of an attachment.
type content struct {
	id   string
	key  [16]byte
	data []byte
}

// Fill puts the step into a batch of the target's writer.
func (s *Step) Fill(b *storage.Batch) error {
	if s.filling != nil {
		if err := b.Err(); err != nil { // else the store would be filled, and the writer not know it
			return err
		}
		return s.filling.Ingest()
	}
	t := s.run.Target
	if t.Counters().Seq != s.expected {
		return errOwn()
	}
	slices.Sort(s.erased)
	into := storage.TransferInto(b)
	into.Erase(slices.Compact(s.erased))
	into.AdvancePurges(max(s.purgeSeq, t.Counters().PurgeSeq), s.trimmed)
	for i := range s.purges {
		b.PutPurge(s.purges[i])
	}
	for i := range s.contents {
		c := &s.contents[i]
		b.PutAttachment(c.id, c.key, c.data)
	}
	into.Replace(s.docs, s.run.empty) // no document comes twice in a Run
	seq := max(s.seq, s.expected)
	b.Advance(seq)
	into.SetOrigins(s.run.originsAt(seq))
	return nil
}

// originsAt returns what the target continues when it has come to a sequence.
func (r *run) originsAt(seq uint64) []storage.Origin {
	out := make([]storage.Origin, len(r.origins))
	for i, o := range r.origins {
		out[i] = storage.Origin{UUID: o.UUID, Upto: min(o.Upto, seq)}
	}
	return out
}

func (s *Step) reset() {
	chunk := s.chunk[:0]
	if cap(chunk) > 2*stepBytes {
		chunk = nil
	}
	clear(s.docs) // they hold memory
	clear(s.contents)
	*s = Step{
		run: s.run, chunk: chunk, erased: s.erased[:0], purges: s.purges[:0],
		docs: s.docs[:0], contents: s.contents[:0],
	}
}

// full reports whether the step should be written.
func (s *Step) full() bool {
	return s.bytes >= s.run.StepBytes || len(s.docs) >= stepDocs || len(s.erased) >= stepDocs || len(s.purges) >= stepDocs
}

// keep returns a copy of bytes that lives as long as the step.
func (s *Step) keep(b []byte) []byte {
	s.bytes += len(b)
	if len(b) > cap(s.chunk)-len(s.chunk) {
		s.chunk = make([]byte, 0, max(len(b), stepBytes+stepBytes/4))
	}
	at := len(s.chunk)
	s.chunk = append(s.chunk, b...)
	return s.chunk[at:len(s.chunk):len(s.chunk)]
}

const designPrefix = "_design/"

// addDoc adds a document whose bytes the step keeps.
func (s *Step) addDoc(d storage.StoredDoc, seq uint64) {
	s.docs = append(s.docs, d)
	s.seq = seq
	s.Design = s.Design || strings.HasPrefix(d.ID, designPrefix)
}

// attachments adds what encoded revisions refer to.
func attachments(into []doc.Attachment, text []byte) ([]doc.Attachment, error) {
	v, err := doc.DecodeRevision(text)
	return append(into, v.Atts...), err
}
