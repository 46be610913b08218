package changes

import (
	"strings"

	"divan/httpapi/core"
	"divan/httpapi/design"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// viewFilter reads filter=_view: documents for which the map function of a view emits
// something.
func viewFilter(c *core.Call, view string) (shard.Filter, error) {
	if view == "" {
		return shard.Filter{}, fault.New(fault.BadRequest, "`view` filter parameter is not provided.")
	}
	ddoc, name, ok := strings.Cut(view, "/")
	if !ok || ddoc == "" || name == "" {
		return shard.Filter{}, fault.New(fault.BadRequest, "`view` must be of the form `designname/viewname`")
	}
	f := shard.Filter{Kind: shard.FilterView}
	return f, findFunction(c, &f.Function, "views", ddoc, name)
}

// functionFilter reads the name of a filter function.
func functionFilter(c *core.Call, filter string) (f shard.Filter, err error) {
	ddoc, name, ok := strings.Cut(filter, "/")
	if !ok || ddoc == "" || name == "" || strings.Contains(name, "/") {
		return f, fault.New(fault.BadRequest, "`filter` must be of the form `designname/filtername`")
	}
	f.Kind = shard.FilterFunction
	if err := findFunction(c, &f.Function, "filters", ddoc, name); err != nil {
		return f, err
	}
	f.Function.Request, err = design.Request(c, nil)
	return f, err
}

// findFunction names a function of a design document, which has to have it.
func findFunction(c *core.Call, f *shard.FilterFunc, group, ddoc, name string) error {
	d, err := c.API.Deps.Designs.Get(c.Request.Context(), c.DB, doc.DesignPrefix+ddoc)
	if err != nil {
		return err
	}
	if err := design.HasFunction(d, group, name); err != nil {
		return err
	}
	f.DB, f.Design, f.Rev, f.Name = c.DB.Name(), d.ID, d.Rev, name
	return nil
}
