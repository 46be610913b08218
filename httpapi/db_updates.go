package httpapi

// globalChanges is the database of what happened to databases.
const globalChanges = "_global_changes"
