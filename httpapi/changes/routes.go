package changes

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the feeds.
func Routes() []core.Route {
	return []core.Route{
		{
			Table: core.DBTable, Path: "/_changes", Access: access.Changes, Allow: "GET,POST,HEAD", Name: "changes",
			Methods: core.Methods{Get: changes, Post: changes},
		},
		{Table: core.ServerTable, Path: "/_db_updates", Allow: "GET", Methods: core.Methods{Get: getDBUpdates}},
	}
}
