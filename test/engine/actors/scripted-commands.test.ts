import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ActionDocument } from '../../../src/core/action.ts';
import type { Proposal } from '../../../src/core/plan/proposal.ts';
import { COMMAND_HELP } from '../../../src/engine/actors/command-language.ts';
import { scriptedCommands } from '../../../src/engine/actors/scripted-commands.ts';
import { exampleActions } from '../../support/examples.ts';
import { callsIn, contextOf, type Run, runActor, type Scene } from './actor-driver.ts';

const found = (await exampleActions()).find(({ name }) => name === 'commands');
if (found === undefined) throw new Error('no action commands');
const action: ActionDocument = found;

const run = (input: string, scene: Scene = {}): Promise<Run> => runActor(scriptedCommands, action, { input, ...scene });

/** What a client sees of a run: messages and artifacts. */
function seen({ proposals }: Run): readonly string[] {
  return proposals.flatMap((proposal) => {
    if (proposal.kind === 'say') return [proposal.text];
    if (proposal.kind !== 'artifact') return [];
    const [part] = proposal.artifact.parts;
    return [`${proposal.artifact.name}: ${part?.kind === 'text' ? part.text : JSON.stringify(part?.kind === 'data' ? part.data : null)}`];
  });
}

function questions({ proposals }: Run): readonly string[] {
  return proposals.flatMap((proposal) => (proposal.kind === 'ask' ? [proposal.question] : []));
}

const files = { 'a.txt': 'one\ntwo\n', 'src/b.txt': 'three' };

describe('a command', () => {
  it.each<[string, Scene['files'], readonly string[]]>([
    ['read a.txt', files, ['a.txt: one\ntwo\n']],
    ['list', files, ['list: a.txt (8 bytes)\nsrc/ (1 file)']],
    ['list src', files, ['list src: src/b.txt (5 bytes)']],
    ['search t', files, ['search "t": a.txt:2: two\nsrc/b.txt:1: three']],
    ['search zzz', files, ['search "zzz": Nothing was found.']],
    ['write a.txt: new', { ...files, 'a.txt': 'new\n' }, []],
    ['write deep/new.md:\n  # Title\n\n  text', { ...files, 'deep/new.md': '# Title\n\ntext\n' }, []],
    ['append a.txt: three', { ...files, 'a.txt': 'one\ntwo\nthree\n' }, []],
    ['append src/b.txt: four', { ...files, 'src/b.txt': 'three\nfour\n' }, []],
    ['replace two with 2 in a.txt', { ...files, 'a.txt': 'one\n2\n' }, []],
    ['replace all "o" with "0" in a.txt', { ...files, 'a.txt': '0ne\ntw0\n' }, []],
    ['delete a.txt', { 'src/b.txt': 'three' }, []],
    ['move a.txt to c/a.txt', { 'src/b.txt': 'three', 'c/a.txt': 'one\ntwo\n' }, []],
    ['say Hello', files, ['Hello']],
    ['call read_file {"path": "src/b.txt", "encoding": "base64"}', files, [expect.stringContaining('dGhyZWU=')]],
  ])('%s is done by the real tools', async (text, after, shown) => {
    const done = await run(text, { files });
    expect(done.end).toEqual({ kind: 'done' });
    expect(done.files).toEqual(after);
    expect(seen(done)).toEqual(shown);
  });

  it('that asks waits for the answer', async () => {
    const done = await run('ask Really?\nwrite x: y', { answers: ['yes'] });
    expect(questions(done)).toEqual(['Really?']);
    expect(done.files).toEqual({ x: 'y\n' });
  });

  it('is the argument "text" where there is one', async () => {
    const done = await run('delete a.txt', { files, args: { text: 'say hi' } });
    expect(seen(done)).toEqual(['hi']);
    expect(done.files).toEqual(files);
  });
});

describe('a message', () => {
  it('becomes one decision that names its commands in order, then one step for each', async () => {
    const done = await run('read a.txt\nwrite b: x\nsay done', { files });
    const decisions = done.proposals.filter((proposal) => proposal.kind === 'decide');
    expect(decisions).toHaveLength(1);
    expect(decisions[0]?.decision).toMatchObject({
      type: 'strategy_choice',
      chosen: '3 commands, in this order: 1. read a.txt; 2. write b (2 characters); 3. say "done"',
    });
    expect(done.proposals.map(({ kind }) => kind)).toEqual(['decide', 'done', 'calls', 'artifact', 'calls', 'say', 'done']);
  });

  it.each(['', '  \n', 'help', 'HELP', '?', '# only a comment'])('%j is answered at once with the language', (input) => {
    expect(scriptedCommands.immediateReply?.(contextOf(action, { input }))).toBe(COMMAND_HELP);
  });

  it.each(['read a', 'hello', 'help\nread a', 'help me'])('%j needs a plan', (input) => {
    expect(scriptedCommands.immediateReply?.(contextOf(action, { input }))).toBeNull();
  });

  it('that is understood only in part is not done in part: a question names the line and lists the language', async () => {
    const done = await run('write x: y\nfrobnicate', { answers: ['write z: w'] });
    expect(questions(done)).toHaveLength(1);
    expect(questions(done)[0]).toContain("line 2 (frobnicate): 'frobnicate' is not a command");
    expect(questions(done)[0]).toContain(COMMAND_HELP);
    expect(done.files).toEqual({ z: 'w\n' });
  });

  it('asks again for each answer that is not understood, and gives up in the end without having done anything', async () => {
    const done = await run('hm', { answers: ['hm?', 'help', '', 'read', 'what'], files });
    expect(questions(done)).toHaveLength(5);
    expect(done.end).toMatchObject({ kind: 'fail', message: expect.stringContaining('after 5 questions') });
    expect(callsIn(done)).toEqual([]);
  });

  it('fails when its question is refused', async () => {
    expect((await run('hm')).end).toEqual({ kind: 'fail', message: 'what to do stayed open: nobody answered' });
  });

  it('whose strategy is refused fails with the reason', async () => {
    const done = await run('delete a.txt', { files, refuse: ({ kind }) => (kind === 'decide' ? 'too risky' : null) });
    expect(done.end).toEqual({ kind: 'fail', message: 'the strategy was refused: too risky' });
    expect(done.files).toEqual(files);
  });

  it('whose strategy is refused with commands as guidance is decided again with them', async () => {
    const refuse = (proposal: Proposal) => (proposal.kind === 'decide' && !proposal.decision.chosen.includes('say') ? 'and say so' : null);
    const done = await run('write x: y', { refuse, guidance: { 1: 'say changed' } });
    const decisions = done.proposals.flatMap((proposal) => (proposal.kind === 'decide' ? [proposal.decision.chosen] : []));
    expect(decisions).toEqual([
      '1 command: 1. write x (2 characters)',
      '2 commands, in this order: 1. write x (2 characters); 2. say "changed"',
    ]);
    expect(seen(done)).toEqual(['changed']);
  });
});

describe('a command that fails or is refused', () => {
  it.each(['read none', 'list none', 'read a.txt'])('%s: a look is said and passed by', async (text) => {
    const refuse = (proposal: Proposal) =>
      proposal.kind === 'calls' && proposal.calls[0]?.arguments['path'] === 'a.txt' ? 'not this one' : null;
    const done = await run(`${text}\nwrite x: y`, { files, refuse });
    expect(done.end).toEqual({ kind: 'done' });
    expect(seen(done)).toEqual([expect.stringMatching(/^command 1 \((read|list) [a-z.]+\): (failed|refused): .*(none|not this one)/)]);
    expect(done.files['x']).toBe('y\n');
  });

  it.each(['replace zzz with y in a.txt', 'delete none', 'move none to b', 'append none: x', 'call nothing {}'])(
    '%s: a change stops the plan, and nothing after it is done',
    async (text) => {
      const done = await run(`write before: x\n${text}\nwrite after: x`, { files });
      expect(done.end).toMatchObject({ kind: 'fail', message: expect.stringMatching(/^command 2 \(.*\): failed: ./) });
      expect(done.files).toEqual({ ...files, before: 'x\n' });
    },
  );

  it('is not an append to a large file: it keeps all of it', async () => {
    const large = 'line\n'.repeat(20_000);
    const done = await run('append big: x', { files: { big: large } });
    expect(done.files).toEqual({ big: `${large}x\n` });
    expect(callsIn(done)).toMatchObject([{ tool: 'write_file', arguments: { append: true } }]);
  });
});

describe('guidance', () => {
  it('adds its commands at the end, whenever it comes', async () => {
    for (const at of [0, 1, 2, 3, 4]) {
      const done = await run('write a: 1\nwrite b: 2', { guidance: { [at]: 'write c: 3\nsay more' } });
      expect(done.files, `at ${at}`).toEqual({ a: '1\n', b: '2\n', c: '3\n' });
      expect(seen(done)).toEqual(['more']);
      expect(callsIn(done).map(({ arguments: args }) => args['path'])).toEqual(['a', 'b', 'c']);
    }
  });

  it('that is not understood changes nothing, and that is said', async () => {
    const done = await run('write a: 1', { guidance: { 2: 'delete a\nplease be careful' } });
    expect(done.files).toEqual({ a: '1\n' });
    expect(seen(done)).toEqual([expect.stringContaining('has no commands that are understood')]);
  });

  it('keeps its place among other guidance', async () => {
    const done = await run('say 1', { guidance: { 1: 'hm', 2: 'say 2', 3: 'help' } });
    expect(seen(done)).toEqual(['1', expect.stringContaining('"hm"'), '2', COMMAND_HELP]);
  });
});

describe('the actor', () => {
  it('gives every step of a run an id of its own', async () => {
    const done = await run('read a.txt\nappend a.txt: x\nlist\nsay a\nhelp\ncall read_file {"path":"a.txt"}', {
      files,
      guidance: { 3: 'hm', 5: 'read a.txt', 6: 'say x' },
    });
    const ids = done.proposals.flatMap((proposal) => ('stepId' in proposal ? [proposal.stepId] : []));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('comes to an end for any message, answers and guidance, and never throws', async () => {
    const text = fc
      .array(
        fc.constantFrom(
          'read a.txt',
          'write x: y',
          'hm',
          'help',
          'ask a',
          'append a.txt: b',
          'delete x',
          '',
          '  indented',
          'replace a with b in a.txt',
        ),
      )
      .map((lines) => lines.join('\n'));
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.array(text, { maxLength: 6 }),
        fc.dictionary(fc.constantFrom('0', '1', '2', '5'), text),
        async (input, answers, guidance) => {
          const done = await run(input, { answers, guidance, files });
          expect(['done', 'fail']).toContain(done.end.kind);
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each(['x', -1, 1.5, {}])('fails, and does not throw, with the cursor %j', async (cursor) => {
    expect(await scriptedCommands.propose(contextOf(action, { input: 'read a', cursor }))).toMatchObject({ kind: 'fail' });
  });
});
