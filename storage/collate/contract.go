package collate

// maxMarks is how many characters behind a contraction are looked at for marks
// that continue it. Text in stream-safe form (UAX #15) has at most 30 marks in
// a row; without a bound a string of marks takes the square of its length.
const maxMarks = 64

// contract appends the elements of s from byte i on, with contractions: of
// adjacent characters, and across combining marks that lie between (UTS #10
// section 4.1, S2.1).
func (t *table) contract(b *scratch, ces []uint64, s string, i int) []uint64 {
	rs := b.runes[:0]
	for _, r := range s[i:] {
		rs = append(rs, r)
	}
	b.runes = rs
	before := s[:i]
	for len(rs) > 0 {
		r, used := rs[0], 1
		e := t.entry(r)
		switch {
		case e == 0:
			ces = t.appendHangul(ces, r)
		case e == unassigned:
			ces = append(ces, computed(r))
		case e&contextual == 0 || t.contractions[r] == nil:
			ces = t.appendOwn(ces, r, before)
		default:
			var best *node
			best, used = longest(t.contractions[r], rs)
			from := best
			if from == nil {
				from = t.contractions[r]
			}
			var further *node
			if further, rs = t.acrossMarks(from, rs, used); further != nil {
				best = further
			}
			if best != nil {
				ces = append(ces, best.ces...)
			} else {
				ces = t.appendOwn(ces, r, before)
			}
		}
		before = string(rs[used-1 : used])
		rs = rs[used:]
	}
	return ces
}

// longest follows adjacent characters; it returns nil, 1 when no contraction
// ends on the way.
func longest(start *node, rs []rune) (best *node, used int) {
	used = 1
	for k, n := 1, start; k < len(rs); k++ {
		if n = n.next[rs[k]]; n == nil {
			break
		}
		if n.ends {
			best, used = n, k+1
		}
	}
	return best, used
}

// acrossMarks goes on with those of the following combining marks, up to
// maxMarks of them, that nothing blocks. It takes them out of the text: what
// stands before them, from rs[0] on, moves up, as that is short and the rest of
// the text may be long.
func (t *table) acrossMarks(from *node, rs []rune, used int) (*node, []rune) {
	if used >= len(rs) || t.combining[rs[used]] <= 0xff {
		return nil, rs
	}
	var best *node
	trail := uint8(t.combining[rs[used]])
	for k, end := used+1, min(used+maxMarks, len(rs)); k < end; k++ {
		class := t.combining[rs[k]]
		if class <= 0xff {
			break
		}
		if n := from.next[rs[k]]; trail < uint8(class>>8) && n != nil && n.ends {
			from, best = n, n
			copy(rs[1:k+1], rs[:k])
			rs = rs[1:]
			k--
			end--
			continue
		}
		trail = uint8(class)
	}
	return best, rs
}
