// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_RESOLVED_CHARACTERS, parseTemplate, resolveTemplates, type TemplateScope } from '../../src/core/action/template.ts';
import type { JsonValue } from '../../src/core/json.ts';

const scope: TemplateScope = {
  arguments: { x: 'ex', n: 7, list: [1, { deep: true }], nothing: null, 'with-dash': 'd' },
  input: 'the text',
  results: new Map([
    ['read', { status: 'succeeded', value: { content: 'abc', lines: [] } }],
    ['bad', { status: 'failed', value: null, reason: 'no such file' }],
  ]),
};

describe('a template', () => {
  it.each<[JsonValue, JsonValue]>([
    ['${args.x}', 'ex'],
    ['${args.n}', 7],
    ['${args.list}', [1, { deep: true }]],
    ['${args.list.1.deep}', true],
    ['${args.nothing}', null],
    ['${args.with-dash}', 'd'],
    ['${ args.x }', 'ex'],
    ['${input}', 'the text'],
    ['${steps.read.result}', { content: 'abc', lines: [] }],
    ['${steps.read.result.content}', 'abc'],
    ['${steps.bad.status}: ${steps.bad.reason}', 'failed: no such file'],
    ['a ${args.n} b ${args.list} c ${args.nothing}', 'a 7 b [1,{"deep":true}] c null'],
    ['${args.x}${args.x}', 'exex'],
    ['$${args.x}', '${args.x}'],
    ['$$${args.x}', '$${args.x}'],
    ['$ {args.x} $x {x}', '$ {args.x} $x {x}'],
    ['', ''],
    [7, 7],
    [{ '${args.x}': ['${args.n}', { a: '${args.x}!' }] }, { '${args.x}': [7, { a: 'ex!' }] }],
  ])('%j becomes %j', (value, expected) => expect(resolveTemplates(value, scope)).toEqual({ ok: true, value: expected }));

  it.each<[string, string]>([
    ['${args.y}', "template ${args.y} has no value: argument 'y' was not given"],
    ['${args.x.y}', "template ${args.x.y} has no value: there is no 'y' in a string"],
    ['${args.x.length}', "template ${args.x.length} has no value: there is no 'length' in a string"],
    ['${args.list.2}', "template ${args.list.2} has no value: there is no '2' in a list of 2"],
    ['${args.list.length}', "template ${args.list.length} has no value: there is no 'length' in a list of 2"],
    ['${args.__proto__}', "template ${args.__proto__} has no value: argument '__proto__' was not given"],
    ['${args.constructor}', "template ${args.constructor} has no value: argument 'constructor' was not given"],
    ['${args.list.1.toString}', "template ${args.list.1.toString} has no value: there is no 'toString' in an object with deep"],
    ['${steps.later.result}', "template ${steps.later.result} has no value: step 'later' has no result yet"],
    ['${steps.bad.result}', "template ${steps.bad.result} has no value: step 'bad' was not successful (failed)"],
  ])('%s has no value, and says why', (text, error) =>
    expect(resolveTemplates({ a: [`in ${text}`] }, scope)).toEqual({ ok: false, error }),
  );

  it('keeps members named __proto__ as data and changes no prototype', () => {
    const value: JsonValue = JSON.parse('{"__proto__":{"polluted":"${args.x}"}}');
    const resolved = resolveTemplates(value, { ...scope, arguments: JSON.parse('{"x":"ex","__proto__":{"own":1}}') });
    expect(JSON.stringify(resolved.ok && resolved.value)).toBe('{"__proto__":{"polluted":"ex"}}');
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    expect(resolveTemplates('${args.__proto__.own}', { ...scope, arguments: JSON.parse('{"__proto__":{"own":1}}') })).toEqual({
      ok: true,
      value: 1,
    });
  });

  it('is looked up once: what it brings in is not a template again', () => {
    expect(resolveTemplates('${args.a}', { ...scope, arguments: { a: '${args.b}', b: 'secret' } })).toEqual({
      ok: true,
      value: '${args.b}',
    });
  });

  it('cannot make more text than there may be', () => {
    const big = { ...scope, arguments: { big: 'x'.repeat(100_000) } };
    expect(resolveTemplates('${args.big}'.repeat(20), big).ok).toBe(true);
    expect(resolveTemplates('${args.big}'.repeat(21), big)).toMatchObject({ ok: false });
    expect(resolveTemplates(Array(21).fill('${args.big}'), big)).toMatchObject({ ok: false });
    expect(MAX_RESOLVED_CHARACTERS).toBe(2_000_000);
  });

  it('never throws, and text without "${" is itself', async () => {
    const text = fc
      .array(
        fc.oneof(
          fc.constantFrom('${', '}', '$', '{', 'args.', 'steps.', 'read', '.result', 'input', '.', '__proto__'),
          fc.string({ unit: 'binary' }),
        ),
      )
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.property(text, (value) => {
        const resolved = resolveTemplates(value, scope);
        if (!value.includes('${')) expect(resolved).toEqual({ ok: true, value });
        expect(resolved.ok || resolved.error.length > 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('that is escaped comes out as it was written', async () => {
    await fc.assert(
      fc.property(fc.array(fc.constantFrom('${', '$', '{', '}', 'args.x', ' ')), (parts) => {
        const value = parts.join('');
        const resolved = resolveTemplates(value.split('${').join('$${'), scope);
        expect(resolved).toEqual({ ok: true, value });
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps texts and references in their order', () => {
    expect(parseTemplate('a ${input} b')).toEqual({ ok: true, value: ['a ', { kind: 'input', text: '${input}', path: [] }, ' b'] });
  });
});
