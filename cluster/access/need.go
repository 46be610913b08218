package access

// Need tells which users may make a request. Every route has one; the zero value is the strictest,
// so that a route of which nothing is said is for server administrators alone (api.md section 3).
type Need uint8

// Who may make a request. What depends on the document, its author or a validation function is
// decided where the document is known.
const (
	// ServerAdmin: server administrators. To others it is the same whether the thing exists.
	ServerAdmin Need = iota

	// Of the server.

	Anyone        // also without an account
	LogIn         // Anyone, even where every request needs an account ([chttpd] require_valid_user)
	Health        // Anyone, even there unless [chttpd] require_valid_user_except_for_up says no
	Account       // any account
	Metrics       // server administrators and the role _metrics
	DatabaseNames // Anyone, unless [chttpd] admin_only_all_dbs

	// Of a database.

	// Documents: its readers. Each document is judged by itself, so this holds for databases
	// of users and of replications, too.
	Documents
	// Contents: its readers, for what shows many documents or tells which exist. In a database
	// of users server administrators; in one of replications its administrators.
	Contents
	// AllDocs is Contents, but the readers of a database of replications may list it; that of
	// _users and _replicator is for server administrators.
	AllDocs
	// Changes is Contents; those of _users and _replicator are for server administrators.
	Changes
	// DBAdmin: its administrators. In a database of users server administrators.
	DBAdmin
	// Settings is DBAdmin, refused in other words.
	Settings
)
