package httpapi

// allRoutes joins what the endpoint families contribute. Rows of a table are
// tried in this order.
func allRoutes() []route {
	var rows []route
	for _, family := range [][]route{
		documentRoutes(),
	} {
		rows = append(rows, family...)
	}
	return rows
}
