package httpapi

// allRoutes joins what the endpoint families contribute. Rows of a table are
// tried in this order: what is called most comes first, and partitionRoutes,
// which ends with a row that takes all that is left, comes last.
func allRoutes() []route {
	var rows []route
	for _, family := range [][]route{
		documentRoutes(), dbRoutes(), revisionRoutes(), settingRoutes(),
		serverRoutes(), sessionRoutes(), nodeRoutes(), partitionRoutes(),
	} {
		rows = append(rows, family...)
	}
	return rows
}
