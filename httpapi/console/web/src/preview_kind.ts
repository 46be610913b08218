// What of an attachment is shown. Its type is what somebody said it is: nothing is ever shown as a
// document of its own, which could run scripts; HTML and SVG are shown as text.

export type PreviewKind = "image" | "audio" | "video" | "json" | "text" | "none";

const images = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon"];
const texts = /^(text\/.*|application\/(javascript|ecmascript|xml|x-sh|sql|yaml|toml|x-yaml|x-ndjson|rtf|x-www-form-urlencoded)|.*\+xml)$/;

/** baseType is a content type without its parameters. */
export function baseType(contentType: string): string {
  return contentType.split(";")[0]!.trim().toLowerCase();
}

export function previewKind(contentType: string): PreviewKind {
  const type = baseType(contentType);
  if (images.includes(type)) return "image";
  if (type.startsWith("audio/")) return "audio";
  if (type.startsWith("video/")) return "video";
  if (type === "application/json" || type.endsWith("+json")) return "json";
  return texts.test(type) ? "text" : "none";
}
