// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ActionDocument, parseAction } from '../../../src/core/action.ts';
import type { JsonValue } from '../../../src/core/json.ts';
import { scriptedSteps } from '../../../src/engine/actors/scripted-steps.ts';
import { callsIn, contextOf, runActor } from './actor-driver.ts';

function action(parts: object): ActionDocument {
  const parsed = parseAction({ name: 'a', description: 'An action', actor: 'scripted/steps', arguments: { type: 'object' }, ...parts });
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

describe('scripted/steps', () => {
  it('walks through the steps of both phases in their order', async () => {
    const run = await runActor(
      scriptedSteps,
      action({
        strategize: [
          {
            id: 'how',
            decide: { type: 'strategy_choice', question: 'How to ${args.what}?', chosen: 'So', alternatives: ['Not'] },
            confidence: 0.5,
          },
          { id: 'who', ask: 'Who?' },
        ],
        execute: [
          {
            id: 'look',
            call: { tool: 'read_file', arguments: { path: '${args.path}' } },
            cost_usd: 0.5,
            confidence: 0.9,
            on_refused: 'continue',
          },
          {
            id: 'both',
            calls: [
              {
                tool: 'write_file',
                arguments: { path: 'b', content: '${steps.look.result.content}by ${steps.who.result}' },
                cost_usd: 0.1,
              },
              { tool: 'write_file', arguments: { path: 'c', content: 'c' }, confidence: 0.2 },
            ],
            confidence: 0.3,
          },
          { say: '${steps.both.result.0.path} and ${steps.both.result.1.path}' },
          { artifact: { name: 'sizes', data: { b: '${steps.both.result.0.size_bytes}' } } },
        ],
      }),
      { args: { what: 'do it', path: 'a' }, files: { a: 'text\n' }, answers: ['Ada'] },
    );
    expect(run.proposals).toEqual([
      {
        kind: 'decide',
        stepId: 'how',
        decision: {
          type: 'strategy_choice',
          question: 'How to do it?',
          chosen: 'So',
          alternatives: ['Not'],
          rationale: '',
          statedConfidence: 0.5,
        },
        cursor: 1,
      },
      { kind: 'ask', stepId: 'who', question: 'Who?', cursor: 2 },
      { kind: 'done' },
      {
        kind: 'calls',
        stepId: 'look',
        calls: [{ tool: 'read_file', arguments: { path: 'a' }, declaredCostUsd: 0.5, statedConfidence: 0.9 }],
        onRefused: 'continue',
        cursor: 1,
      },
      {
        kind: 'calls',
        stepId: 'both',
        calls: [
          { tool: 'write_file', arguments: { path: 'b', content: 'text\nby Ada' }, declaredCostUsd: 0.1, statedConfidence: 0.3 },
          { tool: 'write_file', arguments: { path: 'c', content: 'c' }, statedConfidence: 0.2 },
        ],
        onRefused: 'fail',
        cursor: 2,
      },
      { kind: 'say', stepId: 'execute[2]', text: 'b and c', cursor: 3 },
      {
        kind: 'artifact',
        stepId: 'execute[3]',
        artifact: { artifactId: 'execute[3]', name: 'sizes', parts: [{ kind: 'data', data: { b: 11 } }] },
        cursor: 4,
      },
      { kind: 'done' },
    ]);
    expect(run.files).toEqual({ a: 'text\n', b: 'text\nby Ada', c: 'c' });
  });

  it('makes artifacts of every kind of part', async () => {
    const parts = [
      { text: '${args.t}', media_type: 'text/x' },
      { data: '${args.d}', filename: 'f' },
      { url: 'https://x/${args.t}' },
      { raw: 'aGk=' },
    ];
    const run = await runActor(
      scriptedSteps,
      action({ execute: [{ artifact: { id: 'mine', description: 'd', parts, append: true, last_chunk: false } }] }),
      {
        args: { t: 'tt', d: [1] },
      },
    );
    expect(run.proposals[1]).toMatchObject({
      artifact: {
        artifactId: 'mine',
        description: 'd',
        append: true,
        lastChunk: false,
        parts: [
          { kind: 'text', text: 'tt', mediaType: 'text/x' },
          { kind: 'data', data: [1], filename: 'f' },
          { kind: 'url', url: 'https://x/tt' },
          { kind: 'raw', base64: 'aGk=' },
        ],
      },
    });
  });

  it('gives a batch of one a list as its result, like any batch', async () => {
    const execute = [{ id: 'x', calls: [{ tool: 'read_file', arguments: { path: 'a' } }] }, { say: '${steps.x.result.0.content}' }];
    const run = await runActor(scriptedSteps, action({ execute }), { files: { a: 'hi' } });
    expect(run.proposals.at(-2)).toMatchObject({ kind: 'say', text: 'hi' });
  });

  it.each(['failed', 'refused'] as const)('ends with the reason when a step is %s, and does nothing after it', async (how) => {
    const execute = [
      { id: 'bad', call: { tool: 'read_file', arguments: { path: how === 'failed' ? 'none' : 'a' } } },
      { call: { tool: 'delete_file', arguments: { path: 'a' } } },
    ];
    const refuse = () => (how === 'refused' ? 'not today' : null);
    const run = await runActor(scriptedSteps, action({ execute }), { files: { a: 'x' }, refuse });
    const verb = how === 'failed' ? 'failed' : 'was refused';
    expect(run.end).toMatchObject({ kind: 'fail', message: expect.stringMatching(new RegExp(`^step 'bad' ${verb}: .*(none|not today)`)) });
    expect(run.files).toEqual({ a: 'x' });
  });

  it('goes on after a failed or refused step that says so, and can tell what happened', async () => {
    const execute = [
      { id: 'bad', call: { tool: 'read_file', arguments: { path: 'none' } }, on_refused: 'continue' },
      { say: '${steps.bad.status}, ${steps.bad.reason}' },
    ];
    const run = await runActor(scriptedSteps, action({ execute }));
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.proposals.at(-2)).toMatchObject({ kind: 'say', text: expect.stringMatching(/^failed, .*none/) });
  });

  it('fails with step and template when a template has no value', async () => {
    const run = await runActor(
      scriptedSteps,
      action({ execute: [{ id: 'w', call: { tool: 'write_file', arguments: { path: 'a', content: '${args.x}' } } }] }),
    );
    expect(run.end).toEqual({ kind: 'fail', message: "step 'w': template ${args.x} has no value: argument 'x' was not given" });
    expect(callsIn(run)).toEqual([]);
  });

  it('keeps the type of a template that is the whole argument', async () => {
    const run = await runActor(
      scriptedSteps,
      action({ execute: [{ call: { tool: 'take', arguments: { all: '${args.o}', n: '${args.n}', text: '${args.n}!' } } }] }),
      {
        args: { o: { deep: [null] }, n: 3 },
        tools: { take: null },
      },
    );
    expect(callsIn(run)[0]?.arguments).toEqual({ all: { deep: [null] }, n: 3, text: '3!' });
  });

  it('does the same whatever guidance says', async () => {
    const steps = action({ execute: [{ say: 'one' }, { say: 'two' }] });
    const guided = await runActor(scriptedSteps, steps, { guidance: { 1: 'stop', 2: 'write a: b' } });
    expect(guided.proposals).toEqual((await runActor(scriptedSteps, steps)).proposals);
  });

  it('replies at once where the action is a reply, and says it in a plan otherwise', async () => {
    const reply = action({ execute: [{ reply: 'You said ${input}' }] });
    expect(scriptedSteps.immediateReply?.(contextOf(reply, { input: 'hi' }))).toBe('You said hi');
    expect((await runActor(scriptedSteps, reply, { input: 'hi' })).proposals[1]).toMatchObject({ kind: 'say', text: 'You said hi' });
    expect(scriptedSteps.immediateReply?.(contextOf(action({ execute: [{ say: 'hi' }] })))).toBeNull();
    expect(scriptedSteps.immediateReply?.(contextOf(action({ execute: [{ reply: '${args.x}' }] })))).toBeNull();
  });

  it.each<JsonValue>(['x', -1, 1.5, 99, [], {}, true])('fails, and does not throw, with the cursor %j', async (cursor) => {
    expect(await scriptedSteps.propose(contextOf(action({ execute: [{ say: 'a' }] }), { cursor }))).toMatchObject({ kind: 'fail' });
  });

  it('never throws for any texts, arguments and results', async () => {
    const text = fc
      .array(fc.constantFrom('${args.a}', '${args.a.b}', '${steps.s.result}', '${steps.s.result.0}', '${input}', 'x', '$${'), {
        minLength: 1,
      })
      .map((all) => all.join(''));
    await fc.assert(
      fc.asyncProperty(text, fc.jsonValue(), fc.jsonValue(), async (content, argument, result) => {
        const execute = [
          { id: 's', call: { tool: 't' } },
          { call: { tool: 'u', arguments: { content } } },
          { artifact: { text: content } },
        ];
        const run = await runActor(scriptedSteps, action({ execute }), {
          args: { a: argument as JsonValue },
          tools: { t: result as JsonValue, u: 1 },
        });
        expect(['done', 'fail']).toContain(run.end.kind);
      }),
    );
  });
});
