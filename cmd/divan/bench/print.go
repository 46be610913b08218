package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Print writes the report as a table for people.
func (r *Report) Print(w io.Writer) error {
	title := ""
	if len(r.PIDs) > 0 {
		title = fmt.Sprintf(" %13s %14s %8s", "server cpu ms", "handler cpu ms", "handlers")
	}
	if _, err := fmt.Fprintf(w, "server %s, %d clients, documents of %d bytes\n%-20s %14s %-12s %9s %9s %9s %9s %7s%s\n",
		r.Server, r.Clients, r.DocSize, "workload", "per second", "of", "p50 ms", "p90 ms", "p99 ms", "max ms", "errors", title); err != nil {
		return err
	}
	for _, x := range r.Results {
		rate, unit, cpu := x.PerSecond, x.Unit, ""
		if unit == "bytes" {
			rate, unit = rate/1e6, "MB"
		}
		if len(r.PIDs) > 0 {
			cpu = x.cpuColumns()
		}
		if _, err := fmt.Fprintf(w, "%-20s %14.0f %-12s %9.2f %9.2f %9.2f %9.2f %7d%s\n",
			x.Name, rate, unit, x.P50, x.P90, x.P99, x.Max, x.Errors, cpu); err != nil {
			return err
		}
	}
	return nil
}

// cpuColumns has dashes where there is nothing to compare with.
func (x *Result) cpuColumns() string {
	if x.HandlerCPU == 0 {
		return fmt.Sprintf(" %13.3f %14s %8s", x.ServerCPU, "-", "-")
	}
	return fmt.Sprintf(" %13.3f %14.3f %8.2f", x.ServerCPU, x.HandlerCPU, x.Handlers)
}

// Print writes the comparison as a table for people.
func (c *Comparison) Print(w io.Writer) error {
	cpu := len(c.Servers[0].PIDs) > 0
	var out bytes.Buffer
	for side, s := range c.Servers {
		fmt.Fprintf(&out, "%-7s %s at %s\n", sideName(side)+":", s.Server, s.Address)
	}
	fmt.Fprintf(&out, "%d clients, documents of %d bytes; ratios are first / second of one round, figures and ratios the medians of all rounds\n\n", c.Clients, c.DocSize)
	fmt.Fprintf(&out, "%-20s %6s %-9s | %-45s", "", "", "", "per second")
	if cpu {
		fmt.Fprintf(&out, " | %-45s", "server cpu ms")
	}
	fmt.Fprintf(&out, " | errors\n%-20s %6s %-9s%s", "workload", "rounds", "of", ratioTitles)
	if cpu {
		fmt.Fprint(&out, ratioTitles)
	}
	fmt.Fprintf(&out, " | %7s %7s\n", "first", "second")
	for _, x := range c.Workloads {
		x.print(&out, cpu)
	}
	_, err := out.WriteTo(w)
	return err
}

const ratioTitles = " |      first     second   ratio   least    most"

func (x *Compared) print(out *bytes.Buffer, cpu bool) {
	first, second, unit := x.Servers[0], x.Servers[1], x.Unit
	if unit == "bytes" {
		first.PerSecond, second.PerSecond, unit = first.PerSecond/1e6, second.PerSecond/1e6, "MB"
	}
	fmt.Fprintf(out, "%-20s %6d %-9s | %10.0f %10.0f %s", x.Name, x.Rounds, unit, first.PerSecond, second.PerSecond, x.PerSecond.columns())
	if cpu {
		fmt.Fprintf(out, " | %10.3f %10.3f %s", first.ServerCPU, second.ServerCPU, x.ServerCPU.columns())
	}
	fmt.Fprintf(out, " | %7d %7d\n", first.Errors, second.Errors)
}

// columns has dashes when there is no ratio.
func (r Ratio) columns() string {
	if r.Rounds == 0 {
		return fmt.Sprintf("%7s %7s %7s", "-", "-", "-")
	}
	return fmt.Sprintf("%7.3f %7.3f %7.3f", r.Median, r.Least, r.Most)
}

// PrintJSON writes the comparison for machines.
func (c *Comparison) PrintJSON(w io.Writer) error { return printJSON(w, c) }

// PrintJSON writes the report for machines.
func (r *Report) PrintJSON(w io.Writer) error { return printJSON(w, r) }

func printJSON(w io.Writer, r any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
