/** Standard base64 with padding. */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = '';
  // In parts: the arguments of one call are limited.
  for (let at = 0; at < bytes.length; at += 8_192) binary += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(binary);
}

/** The bytes of standard base64; null for anything else: missing padding, line breaks, and bits behind the last byte included. */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  try {
    const last = text.slice(-4);
    if (btoa(atob(last)) !== last) return null;
    return Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
  } catch {
    return null;
  }
}
