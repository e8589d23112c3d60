import type { Services } from '../app/services.ts';
import { CARD_PATHS } from './card.ts';
import { OPEN_RPC_PATH } from './open-rpc.ts';
import { originOf } from './origin.ts';

/** `GET /`: a page that says what this is for somebody with a browser, the same addresses as JSON for everybody else. */
export function answerHome(request: Request, services: Services): Response {
  const { origin } = originOf(request, services.settings);
  const links: Links = {
    agent_card: `${origin}${CARD_PATHS[0]}`,
    a2a: `${origin}/a2a`,
    openrpc: `${origin}${OPEN_RPC_PATH}`,
    health: `${origin}/health`,
  };
  const headers = { vary: 'Accept', 'cache-control': 'no-cache' };
  if (!wantsHtml(request)) return Response.json({ name: 'CleverAgents', version: services.settings.version, ...links }, { headers });
  return new Response(page(links, services.settings.version), {
    headers: { ...headers, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy(services) },
  });
}

type Links = Readonly<Record<'agent_card' | 'a2a' | 'openrpc' | 'health', string>>;

const wantsHtml = (request: Request): boolean => (request.headers.get('accept') ?? '').toLowerCase().includes('text/html');

const STYLE = `body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
code,a{overflow-wrap:anywhere}dt{font-weight:600}dd{margin:0 0 .75rem}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}a{color:#8ab4ff}}`;

/** Nothing but this page's own style is allowed. */
function policy({ sha256 }: Services): string {
  const bytes = sha256(STYLE).match(/../g) ?? [];
  const hash = btoa(bytes.map((byte) => String.fromCharCode(Number.parseInt(byte, 16))).join(''));
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

function page(links: Links, version: string): string {
  const link = (url: string): string => `<a href="${escapeHtml(url)}">${escapeHtml(url)}</a>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>CleverAgents</title>
<style>${STYLE}</style>
</head>
<body>
<h1>CleverAgents</h1>
<p>This is an agent endpoint that speaks A2A 1.0 and 0.3. A client hands it work; the work becomes a plan that runs under an automation
profile, guards and budgets, stops where a person has to decide, and leaves a trail that can be verified.</p>
<dl>
<dt>Agent Card</dt><dd>${link(links.agent_card)}</dd>
<dt>Endpoint (JSON-RPC 2.0, POST)</dt><dd><code>${escapeHtml(links.a2a)}</code></dd>
<dt>Operations (OpenRPC)</dt><dd>${link(links.openrpc)}</dd>
<dt>Health</dt><dd>${link(links.health)}</dd>
</dl>
<p>Send your key as <code>Authorization: Bearer ca_&hellip;</code>. Version ${escapeHtml(version)}.</p>
</body>
</html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? '');
}
