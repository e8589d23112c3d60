import type { JsonObject, JsonValue } from '../core/json.ts';
import { listOrAbsent, wire } from './emit.ts';
import { EXTENSION_URI } from './extension.ts';
import { PROTOCOL_VERSIONS, type ProtocolVersion } from './version.ts';

/**
 * The Agent Card (contract section 10, choices 14, 15, 18 and 27): from one neutral input the pure 1.0 card, or the hybrid whose members
 * are the union of both versions.
 *
 * Promise: the same input gives the same text, so that its hash can be an ETag; no null, no empty required list, ASCII only (cards with
 * other letters are canonicalised differently by the SDKs' signature checks).
 */
export interface CardInput {
  readonly name: string;
  readonly description: string;
  /** Version of the agent, not of the protocol. */
  readonly version: string;
  readonly provider: { readonly organization: string; readonly url: string };
  readonly documentationUrl?: string | undefined;
  /** Absolute public origin, without a trailing slash: `https://agents.example.com`. */
  readonly baseUrl: string;
  /** What is served; absent: every version. Interfaces speak no other. */
  readonly protocolVersions?: readonly ProtocolVersion[] | undefined;
  /** In order of preference; the first is the main one for 0.3 readers. */
  readonly interfaces?: readonly CardInterface[] | undefined;
  readonly skills: readonly CardSkill[];
  readonly capabilities: { readonly streaming: boolean; readonly pushNotifications: boolean; readonly extendedAgentCard: boolean };
  /** Names of the methods of our extension, from the table of operations. */
  readonly extensionMethods: readonly string[];
  /** What else the parameters of our extension say: on the extended card, what the caller may use. */
  readonly extensionParams?: JsonObject | undefined;
  /** Extensions that a client has to name in each message; others than ours stand on the card beside it. */
  readonly requiredExtensions?: readonly string[] | undefined;
  readonly auth: 'bearer' | 'open';
  /** Where the identity provider describes itself, when tokens of one are accepted. */
  readonly openIdConnectUrl?: string | undefined;
  readonly defaultInputModes?: readonly string[] | undefined;
  readonly defaultOutputModes?: readonly string[] | undefined;
}

export interface CardInterface {
  readonly binding: 'JSONRPC' | 'HTTP+JSON';
  /** Path under the base URL, such as `/a2a`; `''` for the origin itself. */
  readonly path: string;
  readonly versions: readonly ProtocolVersion[];
  readonly tenant?: string | undefined;
}

export interface CardSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[] | undefined;
}

/** JSON-RPC in both versions; 1.0 first, since clients take the first entry that they can speak. */
export const JSON_RPC_INTERFACE: CardInterface = { binding: 'JSONRPC', path: '/a2a', versions: ['1.0', '0.3'] };

/** HTTP+JSON in both versions: 1.0 at the origin, 0.3 under `/v1`, which its clients write behind the address themselves. */
export const REST_INTERFACE: CardInterface = { binding: 'HTTP+JSON', path: '', versions: ['1.0', '0.3'] };

/** What every deployment can do; listed when no action is public, since the list may not be empty. */
export const GENERAL_SKILL: CardSkill = {
  id: 'plan-lifecycle',
  name: 'Plan lifecycle',
  description:
    'Turns a message into a plan that is strategized, executed under guards, stopped for approval where its profile wants one, and applied.',
  tags: ['plan'],
};

const DEFAULT_MODES = ['text/plain', 'application/json'] as const;

/** The card as `hybrid` (no `A2A-Version` header, or 0.3) or as pure `1.0` (header `A2A-Version: 1.0`). */
export function buildCard(input: CardInput, shape: 'hybrid' | '1.0'): JsonObject {
  const { protocolVersions = PROTOCOL_VERSIONS } = input;
  const interfaces = (input.interfaces ?? [JSON_RPC_INTERFACE, REST_INTERFACE]).map((entry) => ({
    ...entry,
    versions: entry.versions.filter((version) => protocolVersions.includes(version)),
  }));
  const hybrid = shape === 'hybrid';
  return wire({
    name: ascii(input.name),
    description: ascii(input.description),
    ...(hybrid ? legacyEndpoints(input.baseUrl, interfaces) : {}),
    supportedInterfaces: interfaces.flatMap((entry) =>
      entry.versions.map((protocolVersion) =>
        wire({ url: urlOf(input.baseUrl, entry), protocolBinding: entry.binding, protocolVersion, tenant: entry.tenant }),
      ),
    ),
    provider: { organization: ascii(input.provider.organization), url: input.provider.url },
    version: input.version,
    documentationUrl: input.documentationUrl,
    capabilities: {
      streaming: input.capabilities.streaming,
      pushNotifications: input.capabilities.pushNotifications,
      extendedAgentCard: input.capabilities.extendedAgentCard,
      extensions: extensionEntries(input),
    },
    ...(hybrid ? { supportsAuthenticatedExtendedCard: input.capabilities.extendedAgentCard } : {}),
    ...(input.auth === 'open' ? {} : security(input.openIdConnectUrl, hybrid)),
    defaultInputModes: modes(input.defaultInputModes),
    defaultOutputModes: modes(input.defaultOutputModes),
    skills: (input.skills.length === 0 ? [GENERAL_SKILL] : input.skills).map(skillEntry),
  });
}

/** The endpoint members of 0.3: one main URL, and every interface again. */
function legacyEndpoints(baseUrl: string, interfaces: readonly CardInterface[]): Record<string, JsonValue> {
  const served = interfaces.filter((entry) => entry.versions.includes('0.3'));
  const main = served[0];
  if (main === undefined) return {};
  return {
    protocolVersion: '0.3.0',
    url: urlOf(baseUrl, main),
    preferredTransport: main.binding,
    additionalInterfaces: served.map((entry) => ({ url: urlOf(baseUrl, entry), transport: entry.binding })),
  };
}

/** `required` is written only where it is true: a default that is spelled out would be dropped by those who check the signature. */
function extensionEntries({ extensionMethods, extensionParams, requiredExtensions = [] }: CardInput): readonly JsonObject[] {
  const own = wire({
    uri: EXTENSION_URI,
    description: 'Plans, guards, budgets, approvals and audit trails of CleverAgents; methods are called over the same JSON-RPC endpoint.',
    required: requiredExtensions.includes(EXTENSION_URI) || undefined,
    params: { methods: [...new Set(extensionMethods)].sort(), ...extensionParams },
  });
  const others = requiredExtensions.filter((uri) => uri !== EXTENSION_URI);
  return [
    own,
    ...others.map(
      (uri): JsonObject => ({ uri, description: 'Clients of this deployment have to name it in each message.', required: true }),
    ),
  ];
}

interface Scheme {
  readonly name: string;
  /** The one-of member of 1.0 and what is in it. */
  readonly member: string;
  readonly body: JsonObject;
  /** The members of 0.3. */
  readonly legacy: JsonObject;
}

/** Any one of them is enough. In the hybrid each scheme holds both forms: 0.3 readers need `type`, 1.0 readers the one-of member. */
function security(openIdConnectUrl: string | undefined, hybrid: boolean): Record<string, JsonValue> {
  const schemes = schemesOf(openIdConnectUrl);
  const entries = schemes.map(({ name, member, body, legacy }): [string, JsonObject] => [
    name,
    { ...(hybrid ? legacy : {}), [member]: body },
  ]);
  return {
    securitySchemes: Object.fromEntries(entries),
    // An empty list of scopes is left out, as ProtoJSON does.
    securityRequirements: schemes.map(({ name }) => ({ schemes: { [name]: {} } })),
    ...(hybrid ? { security: schemes.map(({ name }) => ({ [name]: [] })) } : {}),
  };
}

function schemesOf(openIdConnectUrl: string | undefined): readonly Scheme[] {
  const http = { scheme: 'bearer', description: 'API key or token in the Authorization header' };
  const apiKey = { name: 'X-API-Key', description: 'API key in a header of its own' };
  const oidc = { openIdConnectUrl: openIdConnectUrl ?? '', description: 'Token of the identity provider, in the Authorization header' };
  return [
    { name: 'bearerAuth', member: 'httpAuthSecurityScheme', body: http, legacy: { type: 'http', ...http } },
    {
      name: 'apiKeyAuth',
      member: 'apiKeySecurityScheme',
      body: { location: 'header', ...apiKey },
      legacy: { type: 'apiKey', in: 'header', ...apiKey },
    },
    ...(openIdConnectUrl === undefined
      ? []
      : [{ name: 'openIdConnect', member: 'openIdConnectSecurityScheme', body: oidc, legacy: { type: 'openIdConnect', ...oidc } }]),
  ];
}

function skillEntry(skill: CardSkill): JsonObject {
  const name = ascii(skill.name) || skill.id;
  return wire({
    id: skill.id,
    name,
    description: ascii(skill.description) || name,
    tags: skill.tags.length === 0 ? ['action'] : skill.tags.map(ascii),
    examples: listOrAbsent(skill.examples?.map(ascii)),
  });
}

const modes = (given: readonly string[] | undefined): readonly string[] => listOrAbsent(given) ?? DEFAULT_MODES;

const urlOf = (baseUrl: string, { path }: CardInterface): string => `${baseUrl.replace(/\/+$/, '')}${path}`;

/** Letters lose their marks, typographic signs become plain ones, what is left outside ASCII becomes `?`. */
function ascii(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[‘’‚‛]/g, "'")
    .replace(/[“”„‟]/g, '"')
    .replace(/[‐-―−]/g, '-')
    .replace(/[^\x20-\x7e\t\n]/gu, '?');
}
