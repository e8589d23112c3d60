import { describe, expect, it } from 'vitest';
import { readExampleActions } from '../../../src/cli/example-files.ts';
import { validateArguments } from '../../../src/core/action.ts';
import { COMMAND_HELP } from '../../../src/engine/actors/command-language.ts';
import { makeActorRegistry } from '../../../src/engine/actors/registry.ts';

const { find: findActor, names: ACTOR_NAMES } = makeActorRegistry();

import { exampleActions, exampleProjectFiles } from '../../support/examples.ts';
import { contextOf, runActor } from './actor-driver.ts';

const actions = await exampleActions();
const files = await exampleProjectFiles();

function example(name: string) {
  const action = actions.find((each) => each.name === name);
  const actor = action && findActor(action.actor);
  if (!action || !actor) throw new Error(`no example ${name}`);
  return { action, actor };
}

function argumentsOf(name: string, args: object) {
  const checked = validateArguments(example(name).action, args);
  if (!checked.ok) throw new Error(checked.error.message);
  return checked.value;
}

describe('the registry of actors', () => {
  it('finds the actors it lists, and nothing else', () => {
    for (const name of ACTOR_NAMES) expect(findActor(name)?.name).toBe(name);
    for (const name of ['', 'scripted', 'Scripted/steps', 'constructor', '__proto__', '../scripted/steps'])
      expect(findActor(name)).toBeNull();
  });
});

describe('the example actions', () => {
  it('are complete: checking them adds nothing to what the files say', async () => {
    expect(await readExampleActions()).toEqual(actions);
    expect(actions.map(({ name }) => name)).toEqual(['commands', 'edit-three-files', 'hello', 'help']);
  });

  it.each(actions.map((action) => [action.name, action] as const))('%s has an actor that exists', (_, action) => {
    expect(ACTOR_NAMES).toContain(action.actor);
  });

  it('commands is what the development server uses for messages that name no action', () => {
    expect(example('commands').action).toMatchObject({
      actor: 'scripted/commands',
      automation_profile: 'supervised',
      project: 'example',
      public: true,
    });
  });

  it('edit-three-files changes exactly three files after one decision, and can be run again', async () => {
    const { action, actor } = example('edit-three-files');
    let before = files;
    for (const greeting of ['Good day', 'Moin, moin!']) {
      const run = await runActor(actor, action, { files: before, args: argumentsOf('edit-three-files', { greeting }) });
      expect(run.end).toEqual({ kind: 'done' });
      expect(run.proposals.filter(({ kind }) => kind === 'decide')).toHaveLength(1);
      const changed = Object.keys(run.files).filter((path) => run.files[path] !== before[path]);
      expect(changed.sort()).toEqual(['config/defaults.json', 'docs/usage.md', 'src/greeting.js']);
      expect(run.files['src/greeting.js']).toContain(`GREETING = '${greeting}';`);
      expect(JSON.parse(run.files['config/defaults.json'] ?? '')).toEqual({ greeting });
      before = run.files;
    }
  });

  it('edit-three-files changes only the greeting in the files it writes', async () => {
    const { action, actor } = example('edit-three-files');
    const run = await runActor(actor, action, { files, args: argumentsOf('edit-three-files', { greeting: 'Hello' }) });
    expect(run.files).toEqual(files);
  });

  it.each(["'", 'a"b', 'a\\b', 'a\nb', ' '])('edit-three-files refuses the greeting %j, which would break the code', (greeting) => {
    expect(validateArguments(example('edit-three-files').action, { greeting })).toMatchObject({
      ok: false,
      error: { issues: [{ field: 'arguments.greeting' }] },
    });
  });

  it('hello makes an artifact and changes nothing', async () => {
    const { action, actor } = example('hello');
    const run = await runActor(actor, action, { files, args: argumentsOf('hello', {}) });
    expect(action.apply).toBe('none');
    expect(run.proposals[1]).toMatchObject({ kind: 'artifact', artifact: { parts: [{ kind: 'text', text: 'Hello, world!' }] } });
    expect(run.files).toEqual(files);
  });

  it('help replies at once, with the list of the command language as it is', () => {
    const { action, actor } = example('help');
    expect(actor.immediateReply?.(contextOf(action))).toContain(COMMAND_HELP);
  });
});

describe('the example project', () => {
  it('has a readme, and enough files to search and change', () => {
    expect(Object.keys(files).length).toBeGreaterThanOrEqual(8);
    expect(files['README.md']).toContain('Greeter');
  });
});
