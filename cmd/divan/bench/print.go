package bench

import (
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

// PrintJSON writes the report for machines.
func (r *Report) PrintJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
