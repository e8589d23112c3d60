import * as z from 'zod';
import { extensionError } from '../a2a/errors.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Operation } from './operation.ts';
import { OPERATION_NAMES, OPERATIONS } from './operations.ts';

/**
 * The operations as an OpenRPC 1.3 document, for `rpc.discover` and `/openrpc.json`. Legacy names are listed as deprecated methods.
 * Shapes that many methods share stand once, under `components`.
 */
export function openRpcDocument(service: { readonly version: string; readonly url?: string }): JsonObject {
  described ??= describeOperations();
  return {
    openrpc: '1.3.2',
    info: {
      title: 'CleverAgents',
      version: service.version,
      description: 'The operations beside the standard A2A methods, by JSON-RPC 2.0 on the same endpoint.',
    },
    ...(service.url === undefined ? {} : { servers: [{ name: 'this service', url: service.url }] }),
    methods: described.methods,
    components: { schemas: described.schemas },
  };
}

interface Described {
  readonly methods: readonly JsonObject[];
  readonly schemas: JsonObject;
}

/** Anybody may ask for the document and making it takes tens of milliseconds, so it is made once, when somebody asks. */
let described: Described | undefined;

function describeOperations(): Described {
  const components: Record<string, JsonValue> = {};
  const methods = OPERATION_NAMES.flatMap((name): JsonObject[] => {
    const operation: Operation = OPERATIONS[name];
    const method = describeMethod(operation, components);
    const legacy = (operation.aliases ?? []).map(
      (alias): JsonObject => ({ ...method, name: alias, summary: `Legacy name of ${name}: ${operation.summary}`, deprecated: true }),
    );
    return [method, ...legacy];
  });
  return { methods, schemas: components };
}

function describeMethod(operation: Operation, components: Record<string, JsonValue>): JsonObject {
  const params = jsonSchema(operation.params, components);
  const properties = (params['properties'] ?? {}) as JsonObject;
  const required = (params['required'] ?? []) as readonly JsonValue[];
  // OpenRPC wants required parameters first; by-name calls do not depend on the order.
  const names = Object.keys(properties).sort((a, b) => Number(required.includes(b)) - Number(required.includes(a)));
  return {
    name: operation.name,
    summary: operation.summary,
    paramStructure: 'by-name',
    params: names.map((name): JsonObject => ({ name, required: required.includes(name), schema: properties[name] ?? {} })),
    result: { name: 'result', schema: jsonSchema(operation.result, components) },
    errors: describeErrors(operation.errors),
    ...(operation.deprecated === undefined ? {} : { deprecated: true }),
    'x-role': operation.role,
    ...(operation.alternativeRoles === undefined ? {} : { 'x-alternative-roles': operation.alternativeRoles }),
    'x-idempotent': operation.idempotent === true,
  };
}

/** The JSON Schema of what is sent; named shapes are moved to `components`. */
function jsonSchema(schema: z.ZodType, components: Record<string, JsonValue>): JsonObject {
  const { $schema: _dialect, $defs: named, ...rest } = hoisted(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  for (const [id, definition] of Object.entries((named ?? {}) as JsonObject)) components[id] = definition;
  return rest;
}

function hoisted(schema: unknown): JsonObject {
  // JSON Schema of our own rows: plain data, no hostile depth.
  const text = JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/');
  return JSON.parse(text) as JsonObject;
}

function describeErrors(kinds: Operation['errors']): readonly JsonObject[] {
  const byCode = new Map<number, JsonObject>();
  for (const kind of kinds) {
    const { code } = extensionError(EXAMPLES[kind]);
    const reasons = [...((byCode.get(code)?.['data'] as { readonly kinds: readonly string[] } | undefined)?.kinds ?? []), kind];
    byCode.set(code, { code, message: MEANINGS[kind], data: { kinds: reasons } });
  }
  return [...byCode.values()];
}

const MEANINGS: Readonly<Record<Refusal['kind'], string>> = {
  invalid: 'Invalid params',
  not_found: 'Entity not found',
  unauthenticated: 'Authentication required',
  forbidden: 'Authorization forbidden',
  invalid_state: 'Invalid state',
  already_exists: 'Already exists',
  budget_exceeded: 'Budget exceeded',
  plan_error: 'Plan error',
  too_large: 'Invalid request: the body is too large',
  unavailable: 'Unavailable, retry later',
};

/** One refusal of each kind, to ask the error table for its code. */
const EXAMPLES: { readonly [kind in Refusal['kind']]: Extract<Refusal, { kind: kind }> } = {
  invalid: { kind: 'invalid', message: '', issues: [] },
  not_found: { kind: 'not_found', message: '', entity: 'plan', id: '' },
  unauthenticated: { kind: 'unauthenticated', message: '' },
  forbidden: { kind: 'forbidden', message: '' },
  invalid_state: { kind: 'invalid_state', message: '' },
  already_exists: { kind: 'already_exists', message: '', entity: 'plan', id: '' },
  budget_exceeded: { kind: 'budget_exceeded', message: '' },
  plan_error: { kind: 'plan_error', message: '' },
  too_large: { kind: 'too_large', message: '', limitBytes: 0 },
  unavailable: { kind: 'unavailable', message: '', retryAfterSeconds: 0 },
};
