/**
 * Whether a request was made on this machine: to a loopback address, and not by a page that came from elsewhere. The second part keeps
 * a web site that a developer visits from driving a local server that runs without keys.
 */
export function isLocal(request: Request): boolean {
  const origin = request.headers.get('origin');
  return isLoopback(new URL(request.url).hostname) && (origin === null || isLoopbackOrigin(origin));
}

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && isLoopback(new URL(origin).hostname);
}

/** Hostnames as the URL parser writes them, which leaves one spelling for each address. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
