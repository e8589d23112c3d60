import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { openRpcDocument } from '../../src/api/openrpc.ts';
import type { Operation } from '../../src/api/operation.ts';
import { LEGACY_NAMES, OPERATION_NAMES, OPERATIONS } from '../../src/api/operations.ts';

interface Descriptor {
  readonly name: string;
  readonly required?: boolean;
  readonly schema: object;
}

interface Method {
  readonly name: string;
  readonly summary: string;
  readonly deprecated?: boolean;
  readonly params: readonly Descriptor[];
  readonly result: Descriptor;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
}

const text = JSON.stringify(openRpcDocument({ version: '1.2.3', url: 'https://agents.example' }));
const document = JSON.parse(text) as {
  readonly openrpc: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly unknown[];
  readonly methods: readonly Method[];
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

/** The parts of the OpenRPC 1.3 meta-schema that a document of methods uses. */
const META = {
  type: 'object',
  required: ['openrpc', 'info', 'methods'],
  additionalProperties: false,
  properties: {
    openrpc: { type: 'string', pattern: '^1\\.3\\.[0-9]+$' },
    info: {
      type: 'object',
      required: ['title', 'version'],
      additionalProperties: false,
      properties: { title: { type: 'string' }, version: { type: 'string' }, description: { type: 'string' } },
    },
    servers: {
      type: 'array',
      items: { type: 'object', required: ['url'], properties: { url: { type: 'string' }, name: { type: 'string' } } },
    },
    methods: {
      type: 'array',
      uniqueItems: true,
      items: {
        type: 'object',
        required: ['name', 'params'],
        additionalProperties: false,
        patternProperties: { '^x-': {} },
        properties: {
          name: { type: 'string', minLength: 1 },
          summary: { type: 'string' },
          deprecated: { type: 'boolean' },
          paramStructure: { enum: ['by-position', 'by-name', 'either'] },
          params: { type: 'array', items: { $ref: '#/$defs/descriptor' } },
          result: { $ref: '#/$defs/descriptor' },
          errors: {
            type: 'array',
            items: {
              type: 'object',
              required: ['code', 'message'],
              properties: { code: { type: 'integer' }, message: { type: 'string' }, data: {} },
            },
          },
        },
      },
    },
    components: { type: 'object', additionalProperties: false, properties: { schemas: { type: 'object' } } },
  },
  $defs: {
    descriptor: {
      type: 'object',
      required: ['name', 'schema'],
      additionalProperties: false,
      properties: { name: { type: 'string', minLength: 1 }, required: { type: 'boolean' }, schema: { type: 'object' } },
    },
  },
};

describe('the OpenRPC document', () => {
  it('has the structure of OpenRPC 1.3', () => {
    const validate = new Ajv2020({ allErrors: true }).compile(META);
    validate(document);
    expect(validate.errors ?? []).toEqual([]);
  });

  it('describes every operation and every legacy name once, and nothing else', () => {
    expect(document.methods.map((method) => method.name).sort()).toEqual([...OPERATION_NAMES, ...LEGACY_NAMES.keys()].sort());
    const deprecated = document.methods.filter((method) => method.deprecated === true).map((method) => method.name);
    expect(deprecated.sort()).toEqual([...LEGACY_NAMES.keys()].sort());
  });

  it('resolves every reference', () => {
    const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      expect(reference).toMatch(/^#\/components\/schemas\//);
      expect(Object.keys(document.components.schemas)).toContain(reference.slice('#/components/schemas/'.length));
    }
  });

  it.each(OPERATION_NAMES)('gives JSON Schemas that compile for %s', (name) => {
    const method = document.methods.find((candidate) => candidate.name === name);
    if (method === undefined) throw new Error('not described');
    for (const { schema } of [...method.params, method.result]) {
      const ajv = new Ajv2020({ strict: false, validateFormats: false });
      expect(() => ajv.compile({ ...schema, components: document.components })).not.toThrow();
    }
    const required = method.params.filter((parameter) => parameter.required).map((parameter) => parameter.name);
    const shape = OPERATIONS[name].params.shape as Readonly<Record<string, { safeParse(value: unknown): { readonly success: boolean } }>>;
    for (const { name: field } of method.params) {
      // What may be absent is exactly what the document does not require.
      const operation: Operation = OPERATIONS[name];
      const isMissingNamed = operation.params
        .safeParse({})
        .error?.issues.some((issue) => issue.path.length === 1 && issue.path[0] === field);
      if (shape[field]?.safeParse(undefined).success === false) expect(isMissingNamed === true).toBe(required.includes(field));
    }
    expect(Object.keys(shape).sort()).toEqual(method.params.map((parameter) => parameter.name).sort());
  });

  it("uses the source's error codes", () => {
    const codesOf = (name: string) => document.methods.find((method) => method.name === name)?.errors.map((error) => error.code);
    expect(codesOf('_cleveragents/plan/status')).toEqual([-32602, -32600, -32000, -32002, -32003, -32001]);
    expect(codesOf('_cleveragents/plan/use')).toEqual(expect.arrayContaining([-32001, -32004, -32005, -32006, -32008]));
    expect(codesOf('_cleveragents/health/check')).toEqual([-32602, -32600, -32000]);
  });

  it('shows bounds and meanings of parameters', () => {
    const list = document.methods.find((method) => method.name === '_cleveragents/plan/list');
    expect(list?.params.find((parameter) => parameter.name === 'page_size')?.schema).toMatchObject({
      minimum: 1,
      maximum: 100,
      default: 50,
    });
    const use = document.methods.find((method) => method.name === '_cleveragents/plan/use');
    expect(use?.params.find((parameter) => parameter.name === 'arguments')?.schema).toMatchObject({ type: 'object' });
  });
});
