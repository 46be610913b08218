package clusterctl

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// table is rows of cells that are printed below each other. The first row are the heads.
type table struct {
	rows  [][]string
	right []bool // by column: it holds numbers
}

// newTable begins a table. A head that begins with ">" is one of numbers.
func newTable(heads ...string) *table {
	t := &table{right: make([]bool, len(heads))}
	row := make([]string, len(heads))
	for i, head := range heads {
		row[i], t.right[i] = strings.CutPrefix(head, ">")
	}
	t.add(row...)
	return t
}

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// print prints the table with two blanks between columns.
func (t *table) print(w io.Writer) error {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString(pad + cell + "  ")
			} else {
				line.WriteString(cell + pad + "  ")
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// size is a number of bytes for people.
func size(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) }

// count is so many of something.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + more
}

func copies(n int) string { return count(n, "copy", "copies") }

// oneLine makes a text of the server's one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// more says how much a list that was cut leaves out, "" for nothing.
func more(all, shown int) string {
	if all <= shown {
		return ""
	}
	return fmt.Sprintf("and %s more\n", humanize.Comma(int64(all-shown)))
}
