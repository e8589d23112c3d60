import { AgentCard } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { buildCard, type CardInput, JSON_RPC_INTERFACE } from '../../src/a2a/agent-card.ts';
import { expectOfficial } from './oracles.ts';

const input: CardInput = {
  name: 'CleverAgents',
  description: 'Plans with guards',
  version: '0.1.0',
  provider: { organization: 'Example', url: 'https://example.com' },
  documentationUrl: 'https://agents.example.com/docs',
  baseUrl: 'https://agents.example.com',
  skills: [{ id: 'refactor', name: 'Refactor', description: 'Changes code', tags: ['code'], examples: ['Rename a class'] }],
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
  extensionMethods: ['_cleveragents/plan/use', '_cleveragents/plan/apply', '_cleveragents/plan/use'],
  auth: 'bearer',
};

const walk = (value: unknown, visit: (item: unknown) => void): void => {
  visit(value);
  if (typeof value === 'object' && value !== null) for (const child of Object.values(value)) walk(child, visit);
};

describe.each(['hybrid', '1.0'] as const)('the %s card', (shape) => {
  const card = buildCard(input, shape);

  test('satisfies the official schemas of the versions that read it', () => {
    if (shape === '1.0') expectOfficial('1.0', 'card', card);
    else expectOfficial('0.3', 'card', card);
  });

  test('is read by the official 1.x SDK with its interfaces, extension and security', () => {
    const read = AgentCard.fromJSON(card);
    expect(read.supportedInterfaces.map(({ protocolBinding, protocolVersion }) => [protocolBinding, protocolVersion])).toEqual([
      ['JSONRPC', '1.0'],
      ['JSONRPC', '0.3'],
      ['HTTP+JSON', '1.0'],
      ['HTTP+JSON', '0.3'],
    ]);
    expect(read.capabilities?.extensions.map(({ uri }) => uri)).toEqual(['urn:cleveragents:extensions:v1']);
    expect(read.securitySchemes['bearerAuth']?.scheme).toMatchObject({ $case: 'httpAuthSecurityScheme', value: { scheme: 'bearer' } });
    expect(read.securitySchemes['apiKeyAuth']?.scheme).toMatchObject({
      $case: 'apiKeySecurityScheme',
      value: { location: 'header', name: 'X-API-Key' },
    });
    expect(read.securityRequirements.map(({ schemes }) => Object.keys(schemes))).toEqual([['bearerAuth'], ['apiKeyAuth']]);
  });

  test('has the members that every reader needs', () => {
    expect(card).toMatchObject({
      name: 'CleverAgents',
      description: 'Plans with guards',
      version: '0.1.0',
      provider: { organization: 'Example', url: 'https://example.com' },
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      defaultInputModes: ['text/plain', 'application/json'],
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: [{ id: 'refactor', name: 'Refactor', description: 'Changes code', tags: ['code'], examples: ['Rename a class'] }],
      supportedInterfaces: [
        { url: 'https://agents.example.com/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: 'https://agents.example.com/a2a', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
        { url: 'https://agents.example.com', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { url: 'https://agents.example.com', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
      ],
      securityRequirements: [{ schemes: { bearerAuth: {} } }, { schemes: { apiKeyAuth: {} } }],
      securitySchemes: { bearerAuth: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
    });
  });

  test('declares our extension with every method once, sorted', () => {
    expect((card['capabilities'] as { extensions: unknown }).extensions).toEqual([
      expect.objectContaining({
        uri: 'urn:cleveragents:extensions:v1',
        params: { methods: ['_cleveragents/plan/apply', '_cleveragents/plan/use'] },
      }),
    ]);
  });

  test('holds no null and no empty list but those of scopes', () => {
    const { security: _security, securityRequirements: _requirements, ...rest } = card;
    walk(rest, (item) => {
      expect(item).not.toBeNull();
      expect(item).not.toBeUndefined();
      if (Array.isArray(item)) expect(item.length).toBeGreaterThan(0);
    });
  });

  test('is the same text for the same input', () => {
    expect(JSON.stringify(buildCard(structuredClone(input), shape))).toBe(JSON.stringify(card));
  });

  test('is ASCII whatever the names', () => {
    const text = JSON.stringify(
      buildCard({ ...input, name: 'Café “Zürich” — 東', skills: [{ id: 's', name: '…', description: '', tags: [] }] }, shape),
    );
    expect(text).toMatch(/^[\x20-\x7e]*$/);
    expect(text).toContain('Cafe \\"Zurich\\" - ?');
  });

  test('lists a general skill when no action is public, and completes thin ones', () => {
    expect(buildCard({ ...input, skills: [] }, shape)['skills']).toMatchObject([{ id: 'plan-lifecycle', tags: ['plan'] }]);
    expect(buildCard({ ...input, skills: [{ id: 's', name: 'S', description: '', tags: [], examples: [] }] }, shape)['skills']).toEqual([
      { id: 's', name: 'S', description: 'S', tags: ['action'] },
    ]);
  });

  test('asks for nothing when authentication is off', () => {
    const open = buildCard({ ...input, auth: 'open' }, shape);
    expect(Object.keys(open).filter((name) => name.startsWith('security'))).toEqual([]);
  });

  test('lists the identity provider where there is one', () => {
    const url = 'https://login.example.com/.well-known/openid-configuration';
    const configured = buildCard({ ...input, openIdConnectUrl: url }, shape);
    if (shape === 'hybrid') expectOfficial('0.3', 'card', configured);
    else expectOfficial('1.0', 'card', configured);
    expect(AgentCard.fromJSON(configured).securitySchemes['openIdConnect']?.scheme).toMatchObject({
      $case: 'openIdConnectSecurityScheme',
      value: { openIdConnectUrl: url },
    });
    expect(configured['securityRequirements']).toHaveLength(3);
    expect(card['securitySchemes']).not.toHaveProperty('openIdConnect');
  });

  test('says which extensions are required, ours and others', () => {
    const uris = ['urn:cleveragents:extensions:v1', 'urn:example:terms:v2'];
    const strict = buildCard({ ...input, requiredExtensions: uris }, shape);
    expect(AgentCard.fromJSON(strict).capabilities?.extensions.map(({ uri, required }) => [uri, required])).toEqual([
      ['urn:cleveragents:extensions:v1', true],
      ['urn:example:terms:v2', true],
    ]);
    expect(AgentCard.fromJSON(card).capabilities?.extensions.map(({ uri, required }) => [uri, required])).toEqual([
      ['urn:cleveragents:extensions:v1', false],
    ]);
  });

  test('lists an interface with its tenant', () => {
    const rest = { binding: 'HTTP+JSON', path: '', versions: ['1.0', '0.3'], tenant: 'acme' } as const;
    const both = buildCard({ ...input, baseUrl: 'https://agents.example.com/', interfaces: [JSON_RPC_INTERFACE, rest] }, shape);
    expect((both['supportedInterfaces'] as unknown[]).slice(2)).toEqual([
      { url: 'https://agents.example.com', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: 'acme' },
      { url: 'https://agents.example.com', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3', tenant: 'acme' },
    ]);
    if (shape === 'hybrid') {
      expect(both['additionalInterfaces']).toEqual([
        { url: 'https://agents.example.com/a2a', transport: 'JSONRPC' },
        { url: 'https://agents.example.com', transport: 'HTTP+JSON' },
      ]);
    }
  });
});

describe('the two cards', () => {
  const hybrid = buildCard(input, 'hybrid');
  const pure = buildCard(input, '1.0');
  const LEGACY = ['protocolVersion', 'url', 'preferredTransport', 'additionalInterfaces', 'supportsAuthenticatedExtendedCard', 'security'];

  test('differ by the members of 0.3 and the form of the schemes only', () => {
    expect(new Set(Object.keys(hybrid))).toEqual(new Set([...Object.keys(pure), ...LEGACY]));
    for (const name of Object.keys(pure)) if (name !== 'securitySchemes') expect(hybrid[name]).toEqual(pure[name]);
    expect(hybrid).toMatchObject({
      protocolVersion: '0.3.0',
      url: 'https://agents.example.com/a2a',
      preferredTransport: 'JSONRPC',
      additionalInterfaces: [
        { url: 'https://agents.example.com/a2a', transport: 'JSONRPC' },
        { url: 'https://agents.example.com', transport: 'HTTP+JSON' },
      ],
      supportsAuthenticatedExtendedCard: true,
      security: [{ bearerAuth: [] }, { apiKeyAuth: [] }],
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } },
        apiKeyAuth: { type: 'apiKey', in: 'header', name: 'X-API-Key', apiKeySecurityScheme: { location: 'header', name: 'X-API-Key' } },
      },
    });
  });

  test('promise no 0.3 where it is not served', () => {
    const only = buildCard({ ...input, interfaces: [{ binding: 'JSONRPC', path: '/a2a', versions: ['1.0'] }] }, 'hybrid');
    expect(only).not.toHaveProperty('url');
    expect(only).not.toHaveProperty('protocolVersion');
  });
});
