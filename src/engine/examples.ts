// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps, filled when a plan runs.
import type { ActionDocument } from '../core/action.ts';
import { COMMAND_HELP } from './actors/command-language.ts';

/** The project that a development start imports, under this name. */
export const EXAMPLE_PROJECT_NAME = 'example';

/** A small program that greets: something to read, search and change in a first plan. */
export const EXAMPLE_PROJECT_FILES: readonly { readonly path: string; readonly text: string }[] = [
  {
    path: 'README.md',
    text: `# Greeter

A small program that greets people by name.

    node src/cli.js Ada

What it says by default stands in \`src/greeting.js\` and \`config/defaults.json\`; \`docs/usage.md\` shows how it is used.
`,
  },
  {
    path: 'package.json',
    text: `{
  "name": "greeter",
  "version": "1.0.0",
  "type": "module",
  "scripts": { "test": "node --test" }
}
`,
  },
  { path: '.gitignore', text: 'node_modules/\n' },
  {
    path: 'config/defaults.json',
    text: `{
  "greeting": "Hello"
}
`,
  },
  {
    path: 'docs/usage.md',
    text: `# Usage

Run the program with a name:

    $ node src/cli.js Ada
    Hello, Ada!
`,
  },
  {
    path: 'src/greeting.js',
    text: `/** What people are greeted with. */
export const GREETING = 'Hello';
`,
  },
  {
    path: 'src/greet.js',
    text: `import { GREETING } from './greeting.js';

/** A greeting for one person. */
export function greet(name) {
  return \`\${GREETING}, \${name}!\`;
}
`,
  },
  {
    path: 'src/cli.js',
    text: `import { greet } from './greet.js';

const [name = 'world'] = process.argv.slice(2);
console.log(greet(name));
`,
  },
  {
    path: 'test/greet.test.js',
    text: `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { greet } from '../src/greet.js';
import { GREETING } from '../src/greeting.js';

test('a greeting names the person', () => {
  assert.equal(greet('Ada'), \`\${GREETING}, Ada!\`);
});
`,
  },
];

/** The actions of a development start. They are ordinary actions: each passes `parseAction`. */
export const EXAMPLE_ACTIONS: readonly ActionDocument[] = [
  {
    name: 'commands',
    description:
      'Does what the message says in simple commands: read README.md, write notes.md: some text, search greet. Send "help" for the list.',
    arguments: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'The commands, one in a line; by default those of the message', maxLength: 100_000 },
      },
      additionalProperties: false,
    },
    actor: 'scripted/commands',
    project: EXAMPLE_PROJECT_NAME,
    automation_profile: 'supervised',
    apply: 'project',
    public: true,
  },
  {
    name: 'edit-three-files',
    description: 'Changes the greeting of the example project, in its code, its configuration and its documentation.',
    arguments: {
      type: 'object',
      properties: {
        greeting: {
          type: 'string',
          description: 'What people are greeted with',
          default: 'Good morning',
          minLength: 1,
          maxLength: 60,
          // It goes into source text, so nothing that ends a quoted text.
          pattern: '^[\\p{L}\\p{N}][\\p{L}\\p{N} ,.!?-]*$',
        },
      },
      additionalProperties: false,
    },
    actor: 'scripted/steps',
    project: EXAMPLE_PROJECT_NAME,
    automation_profile: 'supervised',
    apply: 'project',
    public: true,
    definition_of_done: 'The greeting is the same in src/greeting.js, config/defaults.json and docs/usage.md.',
    strategize: [
      {
        id: 'where',
        decide: {
          type: 'strategy_choice',
          question: 'Where does the greeting have to change to "${args.greeting}"?',
          chosen: 'In src/greeting.js, config/defaults.json and docs/usage.md',
          alternatives: ['In src/greeting.js only'],
          rationale: 'The configuration and the documentation repeat the greeting; a change in the code alone would leave them wrong.',
        },
      },
    ],
    execute: [
      { id: 'look', call: { tool: 'search_code', arguments: { query: 'greeting', ignore_case: true } } },
      {
        id: 'code',
        call: {
          tool: 'write_file',
          arguments: {
            path: 'src/greeting.js',
            content: "/** What people are greeted with. */\nexport const GREETING = '${args.greeting}';\n",
          },
        },
      },
      {
        id: 'config',
        call: { tool: 'write_file', arguments: { path: 'config/defaults.json', content: '{\n  "greeting": "${args.greeting}"\n}\n' } },
      },
      {
        id: 'docs',
        call: {
          tool: 'write_file',
          arguments: {
            path: 'docs/usage.md',
            content: '# Usage\n\nRun the program with a name:\n\n    $ node src/cli.js Ada\n    ${args.greeting}, Ada!\n',
          },
        },
      },
      { say: 'The greeting is now "${args.greeting}" in three files.' },
    ],
  },
  {
    name: 'hello',
    description: 'Answers with a greeting as an artifact; changes nothing.',
    arguments: {
      type: 'object',
      properties: { name: { type: 'string', description: 'Who is greeted', default: 'world', minLength: 1, maxLength: 100 } },
      additionalProperties: false,
    },
    actor: 'scripted/steps',
    automation_profile: 'supervised',
    apply: 'none',
    public: true,
    execute: [{ id: 'greeting', artifact: { name: 'greeting', text: 'Hello, ${args.name}!' } }],
  },
  {
    name: 'help',
    description: 'Says what can be sent here.',
    actor: 'scripted/steps',
    apply: 'none',
    public: true,
    execute: [{ reply: `A message is a list of commands, or names an action in its metadata.\n\n${COMMAND_HELP}` }],
  },
];
