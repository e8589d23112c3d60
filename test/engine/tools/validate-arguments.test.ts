import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/json.ts';
import { validateArguments } from '../../../src/engine/tools/validate-arguments.ts';
import { WORKSPACE_TOOLS } from '../../../src/engine/tools/workspace-tools.ts';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    path: { type: 'string', minLength: 1 },
    count: { type: 'integer', minimum: 1 },
    mode: { enum: ['a', 'b'] },
    options: { type: 'object', properties: { deep: { type: 'boolean' } }, required: ['deep'], additionalProperties: false },
    items: { type: 'array', items: { type: 'string' } },
  },
  required: ['path'],
  additionalProperties: false,
};

describe('arguments against their schema', () => {
  it('have no issues when they match', () => {
    expect(validateArguments(SCHEMA, { path: 'a', count: 1, mode: 'b', options: { deep: true }, items: ['x'] })).toEqual([]);
  });

  it.each([
    ['a missing member', {}, [['arguments.path', /required/]]],
    ['a wrong type', { path: 7 }, [['arguments.path', /type/]]],
    ['an empty text', { path: '' }, [['arguments.path', /short/]]],
    ['a number below its minimum', { path: 'a', count: 0 }, [['arguments.count', /1/]]],
    ['half a number', { path: 'a', count: 1.5 }, [['arguments.count', /integer/]]],
    ['a value that is not in the list', { path: 'a', mode: 'c' }, [['arguments.mode', /\["a","b"\]/]]],
    ['an unknown member', { path: 'a', pth: 'b' }, [['arguments.pth', /unknown field 'pth'/]]],
    ['an unknown member with a slash', { path: 'a', 'x/~y': 1 }, [['arguments.x/~y', /unknown field 'x\/~y'/]]],
    ['an inherited name', { path: 'a', constructor: 1 }, [['arguments.constructor', /unknown field/]]],
    ['a member inside', { path: 'a', options: {} }, [['arguments.options.deep', /required/]]],
    ['an unknown member inside', { path: 'a', options: { deep: true, x: 1 } }, [['arguments.options.x', /unknown field/]]],
    ['an item', { path: 'a', items: ['x', 7] }, [['arguments.items.1', /type/]]],
    [
      'several at once',
      { path: 7, count: 'x', y: 1 },
      [
        ['arguments.count', /type/],
        ['arguments.path', /type/],
        ['arguments.y', /unknown/],
      ],
    ],
  ] satisfies [string, JsonObject, [string, RegExp][]][])('name the field of %s', (_name, args, expected) => {
    const issues = [...validateArguments(SCHEMA, args)].sort((a, b) => (a.field < b.field ? -1 : 1));
    expect(issues).toEqual(expected.map(([field, message]) => ({ field, message: expect.stringMatching(message) })));
  });

  it('refuse a member called __proto__, which is a member like any other', () => {
    const args: unknown = JSON.parse('{"path":"a","__proto__":{"count":1}}');
    expect(validateArguments(SCHEMA, args)).toEqual([{ field: 'arguments.__proto__', message: "unknown field '__proto__'" }]);
  });

  it.each([[null], [undefined], ['text'], [7], [[]]])('must be an object, which %j is not', (args) => {
    expect(validateArguments(SCHEMA, args)).toEqual([{ field: 'arguments', message: 'must be an object' }]);
  });

  it('are refused before they are walked when they nest too deep', () => {
    let nested: unknown = 1;
    for (let depth = 0; depth < 50_000; depth += 1) nested = [nested];
    expect(validateArguments({ type: 'object' }, { nested })).toEqual([
      { field: 'arguments', message: expect.stringMatching(/deeper than 64/) },
    ]);
  });

  it.each([
    ['a reference to nowhere', { $ref: '#/$defs/none' }],
    ['a reference to itself', { $ref: '#' }],
    ['a pattern that is none', { properties: { path: { pattern: '(' } } }],
  ])('are all wrong for a schema with %s', (_name, schema) => {
    expect(validateArguments(schema, { path: 'a' })).toMatchObject([
      { field: 'arguments', message: expect.stringMatching(/schema is not usable/) },
    ]);
  });

  it('leave the schema as it was', () => {
    const before = JSON.stringify(SCHEMA);
    validateArguments(SCHEMA, { path: 7 });
    expect(JSON.stringify(SCHEMA)).toBe(before);
  });

  describe.each(WORKSPACE_TOOLS.map((tool) => [tool.spec.name, tool] as const))('of %s', (_name, tool) => {
    it('refuse an unknown member by its name', () => {
      expect(validateArguments(tool.spec.parameters, { surprise: 1 })).toContainEqual({
        field: 'arguments.surprise',
        message: "unknown field 'surprise'",
      });
    });

    it('are refused with wrong types for every member, and never crash what asks for the touched paths', () => {
      const properties = Object.keys(tool.spec.parameters.properties ?? {});
      for (const wrong of [null, [], {}, { path: '..' }, -1.5, Number.NaN]) {
        const args = Object.fromEntries(properties.map((name) => [name, wrong]));
        expect(
          validateArguments(tool.spec.parameters, args)
            .map((issue) => issue.field)
            .sort(),
        ).toEqual(properties.map((name) => `arguments.${name}`).sort());
        expect(tool.paths?.(args) ?? []).toEqual([]);
      }
    });
  });
});
