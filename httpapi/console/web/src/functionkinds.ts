// The kinds of functions of a design document, beside those of views.

export interface Kind {
  one: string;
  blank: string; // what a new one begins with
  note: string;
}

export const kinds: Record<string, Kind | undefined> = {
  filters: {
    one: "filter",
    blank: "function (doc, req) {\n  return doc.type === req.query.type;\n}",
    note: "It is called with a document and the request of a feed of changes, and returns whether the feed has the change.",
  },
  updates: {
    one: "update",
    blank: 'function (doc, req) {\n  if (!doc) return [null, "missing"];\n  doc.seen = true;\n  return [doc, "saved"];\n}',
    note: "It is called with a document, or null, and a request, and returns the document to save, or null, and what is answered.",
  },
  validate_doc_update: {
    one: "validation",
    blank: 'function (newDoc, oldDoc, userCtx, secObj) {\n  if (!newDoc._deleted && !newDoc.type) throw { forbidden: "A type is missing." };\n}',
    note: "It is called for each document that is written, and refuses it by throwing {forbidden: reason} or {unauthorized: reason}.",
  },
  indexes: {
    one: "search index",
    blank: 'function (doc) {\n  if (doc.name) index("default", doc.name, { store: true });\n}',
    note: 'It calls index(name, value, options) for what can be searched; "facet" makes a field countable. Analyzers are set in the design document. Saving builds the index again.',
  },
  nouveau: {
    one: "nouveau index",
    blank: 'function (doc) {\n  if (doc.name) index("text", "name", doc.name, { store: true });\n}',
    note: "It calls index(type, name, value, options) with the type text, string, double or stored. Analyzers are set in the design document. Saving builds the index again.",
  },
  shows: { one: "show", blank: "function (doc, req) {\n  return { json: doc };\n}", note: "It is called with a document, or null, and a request, and returns what is answered." },
  lists: { one: "list", blank: "function (head, req) {\n  var row;\n  while ((row = getRow())) send(JSON.stringify(row) + \"\\n\");\n}", note: "It is called with the head of a view, and reads its rows by getRow." },
};

/** memberOf is where a function lies in its design document. */
export function memberOf(kind: string, name: string): string[] {
  if (kind === "validate_doc_update") return [kind];
  return kind === "indexes" || kind === "nouveau" ? [kind, name, "index"] : [kind, name];
}
