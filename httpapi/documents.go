package httpapi

// documentRoutes lists the endpoints of documents, attachments, bulk
// operations, local documents and feeds.
func documentRoutes() []route {
	return nil
}
