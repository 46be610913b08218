// JavaScript in the editor: one function, as design documents hold them.
import { javascriptLanguage } from "@codemirror/lang-javascript";

export const javascript = javascriptLanguage.configure({ top: "SingleExpression" });
