import type { JsonObject, JsonValue } from '../core/json.ts';
import { listOrAbsent, wire } from './emit.ts';
import { EXTENSION_URI } from './extension.ts';
import type { ProtocolVersion } from './version.ts';

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
  /** In order of preference; the first is the main one for 0.3 readers. */
  readonly interfaces?: readonly CardInterface[] | undefined;
  readonly skills: readonly CardSkill[];
  readonly capabilities: { readonly streaming: boolean; readonly pushNotifications: boolean; readonly extendedAgentCard: boolean };
  /** Names of the methods of our extension, from the table of operations. */
  readonly extensionMethods: readonly string[];
  readonly auth: 'bearer' | 'open';
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

/** What every deployment can do; listed when no action is public, since the list may not be empty. */
export const GENERAL_SKILL: CardSkill = {
  id: 'plan-lifecycle',
  name: 'Plan lifecycle',
  description:
    'Turns a message into a plan that is strategized, executed under guards, stopped for approval where its profile wants one, and applied.',
  tags: ['plan'],
};

const BEARER_SCHEME = 'bearerAuth';
const DEFAULT_MODES = ['text/plain', 'application/json'] as const;

/** The card as `hybrid` (no `A2A-Version` header, or 0.3) or as pure `1.0` (header `A2A-Version: 1.0`). */
export function buildCard(input: CardInput, shape: 'hybrid' | '1.0'): JsonObject {
  const interfaces = input.interfaces ?? [JSON_RPC_INTERFACE];
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
      extensions: [extensionEntry(input.extensionMethods)],
    },
    ...(hybrid ? { supportsAuthenticatedExtendedCard: input.capabilities.extendedAgentCard } : {}),
    ...(input.auth === 'open' ? {} : security(hybrid)),
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

function extensionEntry(methods: readonly string[]): JsonObject {
  return {
    uri: EXTENSION_URI,
    description: 'Plans, guards, budgets, approvals and audit trails of CleverAgents; methods are called over the same JSON-RPC endpoint.',
    required: false,
    params: { methods: [...new Set(methods)].sort() },
  };
}

/** In the hybrid each scheme holds both forms: 0.3 readers need `type`, 1.0 readers the one-of member. */
function security(hybrid: boolean): Record<string, JsonValue> {
  const description = 'API key or token in the Authorization header';
  const http = { scheme: 'bearer', description };
  return {
    securitySchemes: { [BEARER_SCHEME]: { ...(hybrid ? { type: 'http', ...http } : {}), httpAuthSecurityScheme: http } },
    securityRequirements: [{ schemes: { [BEARER_SCHEME]: { list: [] } } }],
    ...(hybrid ? { security: [{ [BEARER_SCHEME]: [] }] } : {}),
  };
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
