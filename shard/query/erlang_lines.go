package query

import "strings"

// lineWidth is where Erlang breaks the lines of terms.
const lineWidth = 80

// TermLines is Term, readable, of a value that is printed from a column on: what does not fit
// into a line goes on below.
func TermLines(value []byte, column int) string {
	flat := Term(value, true)
	if len(flat) >= maxTerm {
		return flat
	}
	var b strings.Builder
	termLines(&b, value, column, 0)
	return b.String()
}

// termLines writes a value behind which as many brackets and commas follow as behind says.
func termLines(b *strings.Builder, value []byte, column, behind int) {
	flat := string(appendTerm(nil, value, true))
	k := kindOf(value)
	if column+len(flat)+behind < lineWidth || k != kindArray && k != kindObject {
		b.WriteString(flat)
		return
	}
	if k == kindArray {
		b.WriteByte('[')
		for e, more := (elements{text: value}), false; e.next(); more = true {
			nextLine(b, column+1, more)
			termLines(b, e.value, column+1, behind+1)
		}
		b.WriteByte(']')
		return
	}
	b.WriteString("{[")
	for m, more := (members{text: value}), false; m.next(); more = true {
		nextLine(b, column+2, more)
		name, of := string(appendBytes(nil, m.name, true)), string(appendTerm(nil, m.value, true))
		after := 1 // a comma
		if m.text[m.pos] == '}' {
			after = behind + len("]}")
		}
		b.WriteString("{" + name + ",")
		if at := column + len("{[{") + len(name) + 1; at+len(of)+1+after < lineWidth {
			b.WriteString(of)
		} else {
			b.WriteString("\n" + strings.Repeat(" ", column+len("{[{")))
			termLines(b, m.value, column+len("{[{"), after+1)
		}
		b.WriteByte('}')
	}
	b.WriteString("]}")
}

// nextLine goes on below, unless it is the first.
func nextLine(b *strings.Builder, column int, more bool) {
	if more {
		b.WriteString(",\n" + strings.Repeat(" ", column))
	}
}
