/**
 * The bytes as text, or null when they are not: a NUL byte or invalid UTF-8 makes a file binary. Nothing is lost on the way
 * (a byte order mark stays), so encoding the text gives the same bytes.
 */
export function decodeText(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The lines with their line feeds; the last may have none. An empty text has no lines. */
export function splitLines(text: string): string[] {
  const lines: string[] = [];
  let start = 0;
  while (start < text.length) {
    const at = text.indexOf('\n', start);
    const end = at === -1 ? text.length : at + 1;
    lines.push(text.slice(start, end));
    start = end;
  }
  return lines;
}
