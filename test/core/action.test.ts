// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_ACTION_CHARACTERS, parseAction, validateArguments } from '../../src/core/action.ts';
import type { FieldIssue } from '../../src/core/refusal.ts';

const minimal = {
  name: 'ns/do-it',
  description: 'Does it',
  actor: 'scripted/steps',
  execute: [{ id: 'first', call: { tool: 'read_file', arguments: { path: 'a' } } }],
};

/** The fields and messages that a document is refused with; fails when it is accepted. */
function issuesOf(document: unknown): readonly FieldIssue[] {
  const parsed = parseAction(document);
  if (parsed.ok) throw new Error('the document was accepted');
  return parsed.error.kind === 'invalid' ? parsed.error.issues : [{ field: '', message: parsed.error.kind }];
}

function fieldsOf(document: unknown): readonly string[] {
  return issuesOf(document).map(({ field }) => field);
}

function accepted(document: unknown) {
  const parsed = parseAction(document);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

describe('an action', () => {
  it('is accepted with little, and applies to its project by default', () => {
    expect(accepted(minimal)).toEqual({ ...minimal, apply: 'project' });
  });

  it('is accepted with all members', () => {
    const full = {
      ...minimal,
      name: 'server:ns/do-it_2.0',
      arguments: { type: 'object', properties: { x: { type: 'string' } }, required: ['x'], additionalProperties: false },
      project: 'example',
      automation_profile: 'supervised',
      guardrails: { max_steps: 5, tool_denylist: ['rm_*'] },
      apply: 'none',
      public: true,
      invariants: ['Never touch main'],
      definition_of_done: 'It is done',
      strategize: [
        {
          id: 'how',
          decide: { type: 'strategy_choice', question: 'How?', chosen: '${args.x}', alternatives: ['not'], rationale: 'so' },
          confidence: 0.5,
        },
      ],
      execute: [
        { id: 'one', call: { tool: 'read_file', arguments: { path: '${args.x}' } }, cost_usd: 0.25, confidence: 1, on_refused: 'continue' },
        { id: 'many', calls: [{ tool: 'ns.tool', cost_usd: 0.1, confidence: 0.2 }, { tool: 'other' }] },
        { ask: 'Really ${steps.one.result.content}?', id: 'really' },
        { say: '${steps.one.status} ${steps.many.result.0} ${steps.really.result} ${input} $${literal}' },
        {
          artifact: {
            id: 'a',
            name: 'n',
            parts: [{ text: 't', media_type: 'text/plain' }, { data: null }, { raw: 'aGk=' }, { url: 'https://x' }],
          },
        },
        { artifact: { text: 'more', append: true, last_chunk: true } },
      ],
    };
    expect(accepted(full)).toEqual(full);
  });

  it('keeps every argument of a call as it was given, also one named __proto__', () => {
    const text = '{"path":"a","__proto__":{"x":1},"deep":[{"constructor":null}]}';
    const action = accepted({ ...minimal, execute: [{ call: { tool: 'read_file', arguments: JSON.parse(text) } }] });
    expect(JSON.stringify(action.execute?.[0]?.call?.arguments)).toBe(text);
  });

  it.each(['name', 'ns/name', 'server:ns/name', 'a.b_c-1', '0'])('may be named %s', (name) => {
    expect(accepted({ ...minimal, name }).name).toBe(name);
  });

  it.each(['', 'Name', 'a b', '/a', 'a/', 'a/b/c', 's:a', '-a', 'a:b:c/d', 'ä', `${'a'.repeat(129)}`, 7, null, ['a'], {}])(
    'may not be named %j',
    (name) => expect(fieldsOf({ ...minimal, name })).toEqual(['name']),
  );

  it.each<[string, object, readonly string[]]>([
    ['an unknown member', { ...minimal, colour: 1, shape: 2 }, ['colour', 'shape']],
    ['an unknown member named __proto__', JSON.parse(`{"__proto__":1,${JSON.stringify(minimal).slice(1)}`), ['__proto__']],
    ['no description', { ...minimal, description: ' ' }, ['description']],
    ['no actor', { ...minimal, actor: undefined }, ['action']],
    ['another way to apply', { ...minimal, apply: 'now' }, ['apply']],
    ['an unknown guardrail', { ...minimal, guardrails: { max_stepz: 1 } }, ['guardrails.max_stepz']],
    ['a negative limit', { ...minimal, guardrails: { max_steps: -1 } }, ['guardrails.max_steps']],
    ['arguments that are no schema', { ...minimal, arguments: [] }, ['arguments']],
    ['steps that are no list', { ...minimal, execute: {} }, ['execute']],
    ['no steps', { ...minimal, execute: [] }, ['execute']],
    ['steps for an actor that ignores them', { ...minimal, actor: 'scripted/commands' }, ['execute']],
    ['blank invariants', { ...minimal, invariants: [''] }, ['invariants[0]']],
  ])('is refused with %s', (_, document, fields) => expect(fieldsOf(document)).toEqual(fields));

  it('is refused when it is too long or too deep, before anything else looks at it', () => {
    expect(issuesOf({ ...minimal, description: 'x'.repeat(MAX_ACTION_CHARACTERS) })[0]?.message).toBe('too_large');
    const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`;
    expect(fieldsOf({ ...minimal, execute: JSON.parse(deep) })).toEqual(['action']);
  });

  it('never makes parsing throw, whatever the value', async () => {
    await fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        (value) => void parseAction(value),
      ),
    );
    await fc.assert(
      fc.property(fc.constantFrom('name', 'arguments', 'execute', 'strategize', 'guardrails', 'actor'), fc.jsonValue(), (member, value) => {
        const parsed = parseAction({ ...minimal, [member]: value });
        if (!parsed.ok && parsed.error.kind === 'invalid') expect(parsed.error.issues.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe('a step', () => {
  const withStep = (step: unknown) => ({ ...minimal, execute: [...minimal.execute, { say: 'x' }, step] });

  it.each<[string, unknown]>([
    ['missing', {}],
    ['null', { tool: null }],
    ['a number', { tool: 7 }],
    ['a list', { tool: ['read_file'] }],
    ['an object', { tool: { name: 'read_file' } }],
    ['empty', { tool: '' }],
    ['blank', { tool: '  ' }],
    ['a template', { tool: '${args.tool}' }],
    ['a look-alike', { tool: 'rеad_file' }],
    ['padded', { tool: ' read_file' }],
  ])('may not call a tool whose name is %s', (_, call) => {
    expect(fieldsOf(withStep({ call }))).toEqual(['execute[2].call.tool']);
    expect(fieldsOf(withStep({ calls: [{ tool: 'ok' }, call] }))).toEqual(['execute[2].calls[1].tool']);
  });

  it('says what a missing tool is, by its field', () => {
    expect(issuesOf(withStep({ call: {} }))).toEqual([
      { field: 'execute[2].call.tool', message: 'is required: must be the name of a tool' },
    ]);
  });

  it.each<[string, unknown, readonly string[]]>([
    ['does nothing', {}, ['execute[2]']],
    ['does two things', { say: 'a', ask: 'b' }, ['execute[2]']],
    ['is null', null, ['execute[2]']],
    ['is text', 'say', ['execute[2]']],
    ['has an unknown member', { say: 'a', when: 'now' }, ['execute[2].when']],
    ['has an unknown member in its call', { call: { tool: 'a', argumentz: {} } }, ['execute[2].call.argumentz']],
    ['has arguments that are a list', { call: { tool: 'a', arguments: [] } }, ['execute[2].call.arguments']],
    ['calls nothing', { calls: [] }, ['execute[2].calls']],
    ['decides without a question', { decide: { type: 'tool_choice', chosen: 'a' } }, ['execute[2].decide.question']],
    ['decides something unknown', { decide: { type: 'coin', question: 'q', chosen: 'a' } }, ['execute[2].decide.type']],
    ['has a negative cost', { call: { tool: 'a' }, cost_usd: -1 }, ['execute[2].cost_usd']],
    ['has a cost of seven decimals', { call: { tool: 'a' }, cost_usd: 0.0000001 }, ['execute[2].cost_usd']],
    ['has a cost for a batch', { calls: [{ tool: 'a' }], cost_usd: 1 }, ['execute[2].cost_usd']],
    ['has a cost for a text', { say: 'a', cost_usd: 1 }, ['execute[2].cost_usd']],
    ['is surer than sure', { call: { tool: 'a' }, confidence: 1.1 }, ['execute[2].confidence']],
    ['has a confidence for a text', { say: 'a', confidence: 1 }, ['execute[2].confidence']],
    ['has another way out', { call: { tool: 'a' }, on_refused: 'retry' }, ['execute[2].on_refused']],
    ['could not be refused', { say: 'a', on_refused: 'continue' }, ['execute[2].on_refused']],
    ['has an id with a bracket', { id: 'execute[0]', say: 'a' }, ['execute[2].id']],
    ['repeats an id', { id: 'first', say: 'a' }, ['execute[2].id']],
    ['makes an empty artifact', { artifact: { name: 'a' } }, ['execute[2].artifact']],
    ['makes an artifact twice', { artifact: { text: 'a', data: 1 } }, ['execute[2].artifact']],
    ['makes an artifact of an empty part', { artifact: { parts: [{}] } }, ['execute[2].artifact.parts[0]']],
    ['makes an artifact of broken base64', { artifact: { parts: [{ raw: '*' }] } }, ['execute[2].artifact.parts[0].raw']],
  ])('is refused when it %s', (_, step, fields) => expect(fieldsOf(withStep(step))).toEqual(fields));

  it('may reply only alone, in execute', () => {
    expect(accepted({ ...minimal, execute: [{ reply: 'Hi' }] }).execute).toEqual([{ reply: 'Hi' }]);
    expect(fieldsOf(withStep({ reply: 'Hi' }))).toEqual(['execute[2].reply']);
    expect(fieldsOf({ ...minimal, strategize: [{ say: 'a' }], execute: [{ reply: 'Hi' }] })).toEqual(['execute[0].reply']);
    expect(fieldsOf({ ...minimal, strategize: [{ reply: 'Hi' }] })).toEqual(['strategize[0].reply']);
  });

  it('may call tools in execute only, where the gate on calls stands', () => {
    expect(fieldsOf({ ...minimal, strategize: [{ call: { tool: 'a' } }] })).toEqual(['strategize[0].call']);
    expect(fieldsOf({ ...minimal, strategize: [{ calls: [{ tool: 'a' }] }] })).toEqual(['strategize[0].calls']);
  });
});

describe('a template that can never be filled', () => {
  const closed = { type: 'object', properties: { x: {} }, additionalProperties: false };
  const withSay = (say: string, schema?: object) => ({
    ...minimal,
    ...(schema ? { arguments: schema } : {}),
    execute: [...minimal.execute, { id: 'text', say }],
  });

  it.each<[string, string, object | undefined]>([
    ['an argument of an action without arguments', '${args.x}', undefined],
    ['an argument that is not declared', '${args.y}', closed],
    ['an argument that is only inherited', '${args.constructor}', closed],
    ['an argument beside declared ones', '${args.y}', { type: 'object', properties: { x: {} } }],
    ['an unknown step', '${steps.nobody.result}', undefined],
    ['the step itself', '${steps.text.result}', undefined],
    ['nothing', '${}', undefined],
    ['code', '${1+1}', undefined],
    ['a shell variable', '${HOME}', undefined],
    ['all arguments', '${args}', closed],
    ['a step without a member', '${steps.first}', undefined],
    ['another member of a step', '${steps.first.value}', undefined],
    ['a member of a status', '${steps.first.status.x}', undefined],
    ['a member of the input', '${input.x}', undefined],
    ['a template without an end', 'a ${args.x', closed],
  ])('is refused: %s', (_, say, schema) => expect(fieldsOf(withSay(say, schema))).toEqual(['execute[1].say']));

  it('is named by the field it stands in, however deep', () => {
    const execute = [{ call: { tool: 'a', arguments: { files: [{ path: 'ok' }, { path: '${args.nope}' }] } } }];
    expect(fieldsOf({ ...minimal, execute })).toEqual(['execute[0].call.arguments.files[1].path']);
  });

  it('includes results of later steps, and of steps that have none', () => {
    expect(fieldsOf({ ...minimal, execute: [{ say: '${steps.later.result}' }, { id: 'later', call: { tool: 'a' } }] })).toEqual([
      'execute[0].say',
    ]);
    expect(fieldsOf({ ...minimal, execute: [{ id: 'said', say: 'a' }, { say: '${steps.said.result}' }] })).toEqual(['execute[1].say']);
  });

  it('does not include what could be filled', () => {
    const open = { type: 'object', properties: { x: {} }, additionalProperties: true };
    for (const [say, schema] of [
      ['${args.y.z.0}', open],
      ['${args.any}', { type: 'object' }],
      ['${args.x.y}', closed],
      ['$${HOME} and ${steps.first.result.content}', undefined],
    ] as const) {
      expect(parseAction(withSay(say, schema)).ok).toBe(true);
    }
  });
});

describe('the arguments of a use', () => {
  const action = (schema?: object) => accepted({ ...minimal, ...(schema ? { arguments: schema } : {}) });
  const refused = (schema: object | undefined, args: unknown) => {
    const outcome = validateArguments(action(schema), args);
    if (outcome.ok) throw new Error('accepted');
    return outcome.error.kind === 'invalid'
      ? outcome.error.issues.map(({ field, message }) => `${field}: ${message}`)
      : [outcome.error.kind];
  };

  it('must be absent or empty when the action declares none', () => {
    expect(validateArguments(action(), undefined)).toEqual({ ok: true, value: {} });
    expect(validateArguments(action(), {})).toEqual({ ok: true, value: {} });
    expect(refused(undefined, { x: 1 })).toEqual(['arguments.x: is not known here']);
  });

  it('are named by field where they miss the schema', () => {
    const schema = {
      type: 'object',
      properties: {
        target: { type: 'string' },
        count: { type: 'integer', minimum: 1 },
        mode: { enum: ['a', 'b'] },
        files: { type: 'array', items: { $ref: '#/$defs/file' } },
        'a/b~c d': { type: 'null' },
      },
      required: ['target'],
      additionalProperties: false,
      $defs: { file: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
    };
    expect(refused(schema, {})).toEqual(['arguments.target: is required']);
    expect(refused(schema, { target: 7 })).toEqual(['arguments.target: must be string, not number']);
    expect(refused(schema, { target: 't', files: [{ path: 'p' }, {}, { path: null }] })).toEqual([
      'arguments.files[1].path: is required',
      'arguments.files[2].path: must be string, not null',
    ]);
    expect(refused(schema, { target: 't', other: 1, __proto__x: 2 })).toEqual([
      'arguments.other: is not known here',
      'arguments.__proto__x: is not known here',
    ]);
    expect(refused(schema, { target: 't', count: 0, mode: 'c', 'a/b~c d': 1 }).map((text) => text.split(':')[0])).toEqual([
      'arguments.count',
      'arguments.mode',
      'arguments.a/b~c d',
    ]);
    expect(refused(schema, JSON.parse('{"target":"t","__proto__":{}}'))).toEqual(['arguments.__proto__: is not known here']);
    expect(validateArguments(action(schema), { target: 't', count: 2, mode: 'a', files: [{ path: 'p', more: 1 }] }).ok).toBe(true);
  });

  it('are told the pattern that they miss', () => {
    expect(
      refused({ properties: { a: { $ref: '#/$defs/p' } }, $defs: { p: { type: 'string', pattern: '^[a-z]+$' } } }, { a: 'A' }),
    ).toEqual(['arguments.a: must match ^[a-z]+$']);
  });

  it.each([null, [], 'x', 7, true])('may not be %j', (args) =>
    expect(refused({ type: 'object' }, args)).toEqual(['arguments: must be an object']),
  );

  it('may not be too deep, too long, or hold what JSON has not', () => {
    const deep: unknown = JSON.parse(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`);
    expect(refused({ type: 'object' }, deep)[0]).toContain('nested');
    expect(refused({ type: 'object' }, { a: 'x'.repeat(300_000) })).toEqual(['too_large']);
    expect(refused({ type: 'object' }, { a: Array(5001).fill(0) })[0]).toContain('more than 5000 items');
    for (const value of [Number.NaN, 1n, undefined, new Date(0), () => 1])
      expect(refused({ type: 'object' }, { a: value })).toHaveLength(1);
  });

  it('get the defaults of what is absent, and keep what is given', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', default: 'x' }, b: { default: [1] }, c: { type: 'null' } },
      required: ['a'],
    };
    expect(validateArguments(action(schema), {})).toEqual({ ok: true, value: { a: 'x', b: [1] } });
    expect(validateArguments(action(schema), { a: 'y', c: null })).toEqual({ ok: true, value: { a: 'y', c: null, b: [1] } });
  });

  it('never make checking throw, whatever schema was accepted', async () => {
    const keyword = fc.constantFrom(
      'type',
      'properties',
      'required',
      'items',
      'enum',
      'pattern',
      'allOf',
      'not',
      'minimum',
      '$ref',
      'uniqueItems',
      'if',
      'const',
    );
    const schema = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        fc.boolean(),
        fc.dictionary(keyword, fc.oneof(tie('node'), fc.jsonValue({ maxDepth: 2 }), fc.array(tie('node'), { maxLength: 2 }))),
      ),
    })).node;
    let usable = 0;
    await fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b'), schema),
        fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue({ maxDepth: 3 })),
        (properties, args) => {
          const parsed = parseAction({ ...minimal, arguments: { type: 'object', properties } });
          if (!parsed.ok) return;
          usable += 1;
          void validateArguments(parsed.value, args);
        },
      ),
      { numRuns: 500 },
    );
    expect(usable).toBeGreaterThan(20);
  });
});

describe('a broken schema of arguments', () => {
  it.each<[string, object, string]>([
    ['another root than an object', { type: 'string' }, 'arguments.type'],
    ['an unknown type', { properties: { a: { type: 'strng' } } }, 'arguments.properties.a.type'],
    ['a schema that is text', { properties: { a: 'string' } }, 'arguments.properties.a'],
    ['properties as a list', { properties: [] }, 'arguments.properties'],
    ['required as text', { required: 'a' }, 'arguments.required'],
    ['a broken pattern', { properties: { a: { pattern: '(' } } }, 'arguments.properties.a.pattern'],
    ['a broken name pattern', { patternProperties: { '[': {} } }, 'arguments.patternProperties.['],
    ['a negative length', { properties: { a: { minLength: -1 } } }, 'arguments.properties.a.minLength'],
    ['an empty enum', { properties: { a: { enum: [] } } }, 'arguments.properties.a.enum'],
    ['an exclusive limit of the old form', { properties: { a: { exclusiveMinimum: true } } }, 'arguments.properties.a.exclusiveMinimum'],
    ['a reference to nothing', { properties: { a: { $ref: '#/$defs/no' } } }, 'arguments.properties.a.$ref'],
    ['a reference to elsewhere', { properties: { a: { $ref: 'https://example.com/x.json' } } }, 'arguments.properties.a.$ref'],
    ['a reference to all of it', { properties: { a: { $ref: '#' } } }, 'arguments.properties.a.$ref'],
    ['a reference by an inherited name', { properties: { a: { $ref: '#/constructor' } } }, 'arguments.properties.a.$ref'],
    [
      'a part that contains itself',
      { properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: { properties: { n: { $ref: '#/$defs/n' } } } } },
      'arguments.properties.a.$ref.properties.n.$ref',
    ],
    ['a default that misses its schema', { properties: { a: { type: 'string', default: 7 } } }, 'arguments.properties.a.default'],
    ['a broken part that is not used', { $defs: { a: { type: 7 } } }, 'arguments.$defs.a.type'],
  ])('is refused: %s', (_, schema, field) => expect(fieldsOf({ ...minimal, arguments: schema })).toContain(field));

  it('is refused when its references make it huge', () => {
    const $defs: Record<string, object> = { d0: { type: 'string' } };
    for (let index = 1; index < 14; index += 1)
      $defs[`d${index}`] = { allOf: [{ $ref: `#/$defs/d${index - 1}` }, { $ref: `#/$defs/d${index - 1}` }] };
    const issues = issuesOf({ ...minimal, arguments: { properties: { a: { $ref: '#/$defs/d13' } }, $defs } });
    expect(issues.some(({ message }) => message.includes('too large'))).toBe(true);
  });

  it('is not refused for annotations and keywords it does not know', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/a',
      title: 't',
      type: 'object',
      properties: { id: { type: 'string', examples: ['x'], 'x-form': 'wide' } },
    };
    expect(parseAction({ ...minimal, arguments: schema }).ok).toBe(true);
  });
});
