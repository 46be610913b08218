package memory

// Holder counts the bytes that are held for a request. It belongs to one goroutine at a time.
type Holder interface {
	// Hold takes memory for n more bytes, before they are kept.
	Hold(n int) error
	// Drop gives n bytes back that Hold has taken.
	Drop(n int)
}

// step is how many bytes Steps takes at a time.
const step = 16 << 10

// Steps counts many small pieces on a Holder. What is small as a whole takes nothing. The zero
// Steps counts on none.
type Steps struct {
	holder       Holder
	bytes, taken int // taken: from holder, a multiple of step
}

// InSteps returns a count of nothing on h, which may be nil.
func InSteps(h Holder) Steps { return Steps{holder: h} }

// Add counts n more bytes.
func (s *Steps) Add(n int) error {
	if s.holder == nil {
		return nil
	}
	want := s.bytes + n
	if more := want - want%step - s.taken; more > 0 {
		if err := s.holder.Hold(more); err != nil {
			return err
		}
		s.taken += more
	}
	s.bytes = want
	return nil
}

// Reduce gives back all but n bytes.
func (s *Steps) Reduce(n int) {
	s.bytes = min(max(n, 0), s.bytes)
	if keep := s.bytes - s.bytes%step; keep < s.taken {
		s.holder.Drop(s.taken - keep)
		s.taken = keep
	}
}

// Taken returns how many bytes the holder has.
func (s *Steps) Taken() int { return s.taken }
