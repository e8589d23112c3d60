import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mayCall, type Operation } from '../../src/api/operation.ts';
import { findOperation, LEGACY_NAMES, OPERATION_NAMES, OPERATIONS } from '../../src/api/operations.ts';
import { parseParams } from '../../src/api/parse-params.ts';
import { ROLES } from '../../src/core/principal.ts';

const rows: readonly (readonly [string, Operation])[] = OPERATION_NAMES.map((name) => [name, OPERATIONS[name]]);

/** One value of every JSON type; each field refuses most of them. */
const JSON_SAMPLES: readonly unknown[] = [null, true, 1.5, '\0', [[]], { nothing: 'of this name' }];

const TAKES_ANY: ReadonlySet<string> = new Set(['_cleveragents/config/set value', '_cleveragents/guard/authorize tool_name']);

describe.each(rows)('%s', (name, operation) => {
  it('is listed under its own name', () => {
    expect(operation.name).toBe(name);
    expect(findOperation(name)).toEqual({ name, operation });
  });

  it('refuses an unknown field by name', () => {
    const parsed = parseParams(operation, { no_such_field: 1 });
    expect(parsed.ok).toBe(false);
    if (parsed.ok || parsed.error.kind !== 'invalid') throw new Error('expected an invalid refusal');
    expect(parsed.error.issues).toContainEqual({ field: 'no_such_field', message: 'unknown field' });
    expect(parsed.error.message).toContain('no_such_field');
  });

  it('names each field that has the wrong type', () => {
    for (const [field, schema] of Object.entries(operation.params.shape)) {
      const wrong = JSON_SAMPLES.filter((sample) => !schema.safeParse(sample).success);
      // Two fields take every JSON value: that of a setting, and a tool's name, which the plan refuses so that it is recorded.
      if (!TAKES_ANY.has(`${name} ${field}`)) expect(wrong.length, field).toBeGreaterThanOrEqual(3);
      for (const sample of wrong) {
        const parsed = parseParams(operation, { [field]: sample });
        if (parsed.ok || parsed.error.kind !== 'invalid') throw new Error(`${field} took ${JSON.stringify(sample)}`);
        const named = parsed.error.issues.some((issue) => issue.field === field || issue.field.startsWith(`${field}.`));
        expect(named, `${field} given ${JSON.stringify(sample)}: ${parsed.error.message}`).toBe(true);
      }
    }
  });

  it('never throws, whatever the parameters are', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }), (params) => {
        const parsed = parseParams(operation, params);
        return parsed.ok || parsed.error.kind === 'invalid';
      }),
      { numRuns: 200 },
    );
  });

  it('never throws when its own fields hold anything', () => {
    const fields = Object.keys(operation.params.shape);
    if (fields.length === 0) return;
    const record = fc.record(Object.fromEntries(fields.map((field) => [field, fc.anything()])), { requiredKeys: [] });
    fc.assert(
      fc.property(record, (params) => {
        const parsed = parseParams(operation, params);
        return parsed.ok || parsed.error.kind === 'invalid';
      }),
      { numRuns: 200 },
    );
  });

  it('reads the key fresh where it approves or administers', () => {
    const strong = operation.role === 'approver' || operation.role === 'admin' || (operation.alternativeRoles ?? []).includes('approver');
    expect(operation.freshKey === true).toBe(strong);
  });

  it('names positional parameters that exist', () => {
    for (const field of operation.cli?.positional ?? []) expect(Object.keys(operation.params.shape)).toContain(field);
  });

  it('bounds every text and every list that it takes', () => {
    for (const [field, schema] of Object.entries(operation.params.shape)) {
      // The value of a setting is checked with its key; alone it takes any JSON.
      if (name === '_cleveragents/config/set' && field === 'value') continue;
      expect(schema.safeParse('x'.repeat(5_000_000)).success, field).toBe(false);
      expect(schema.safeParse(Array.from({ length: 100_000 }, () => 'x')).success, field).toBe(false);
    }
  });
});

describe('the list of operations', () => {
  it('finds nothing under names that every object has', () => {
    for (const method of ['constructor', '__proto__', 'toString', 'hasOwnProperty', '']) expect(findOperation(method)).toBeNull();
  });

  it('answers legacy names with the operation that replaces them', () => {
    expect([...LEGACY_NAMES]).toEqual([
      ['plan.create', '_cleveragents/plan/use'],
      ['plan.execute', '_cleveragents/plan/execute'],
      ['plan.status', '_cleveragents/plan/status'],
      ['plan.diff', '_cleveragents/plan/diff'],
      ['plan.apply', '_cleveragents/plan/apply'],
      ['registry.list_tools', '_cleveragents/registry/tool/list'],
    ]);
    expect(findOperation('plan.create')).toMatchObject({ alias: 'plan.create', name: '_cleveragents/plan/use' });
  });

  it('gives each command of the command line to one operation', () => {
    const commands = rows.flatMap(([, operation]) => (operation.cli === undefined ? [] : [operation.cli.command.join(' ')]));
    expect(new Set(commands).size).toBe(commands.length);
  });

  it('lets an approver execute as approval and apply, and an operator execute but not apply', () => {
    expect(mayCall(OPERATIONS['_cleveragents/plan/execute'], ['approver'])).toBe(true);
    expect(mayCall(OPERATIONS['_cleveragents/plan/execute'], ['operator'])).toBe(true);
    expect(mayCall(OPERATIONS['_cleveragents/plan/apply'], ['approver'])).toBe(true);
    expect(mayCall(OPERATIONS['_cleveragents/plan/apply'], ['operator'])).toBe(false);
  });

  it('lets nobody but an administrator change a project, an action, a key or a setting past the gates', () => {
    const changing = /^_cleveragents\/(?:project\/(?:create|commit|blob\/.*)|action\/add|key\/.*|config\/set)$/;
    for (const [name, operation] of rows) {
      if (!changing.test(name)) continue;
      for (const role of ROLES) expect(mayCall(operation, [role]), `${role} ${name}`).toBe(role === 'admin');
    }
  });
});
