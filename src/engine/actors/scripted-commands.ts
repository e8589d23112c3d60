import type { Proposal, ProposedCall, StepResult } from '../../core/plan/proposal.ts';
import type { Actor, ActorContext } from './actor.ts';
import type { Command, CommandProblem } from './command-language.ts';
import { COMMAND_HELP, describeCommand, parseCommands } from './command-language.ts';
import { showResult } from './show-result.ts';

/**
 * The actor `scripted/commands`: does what the message says in the command language (docs/commands.md), so that somebody with any client
 * can drive a guarded plan.
 *
 * The commands of the argument `text` (or, without it, of the message) become steps in their order. A message that is not understood as
 * a whole is answered by a question, and nothing of it is done; the answer takes its place. Guidance adds its commands at the end. The
 * cursor is the index of the step that comes next: steps are only ever added behind it.
 */
export const scriptedCommands: Actor = {
  name: 'scripted/commands',
  propose: (context) => Promise.resolve(context.phase === 'strategize' ? strategize(context) : execute(context)),
  immediateReply(context) {
    const { commands, problems } = parseCommands(messageOf(context));
    return problems.length === 0 && commands.every((command) => command.kind === 'help') ? COMMAND_HELP : null;
  },
};

/** Questions about one message before the plan gives up. */
const MAX_QUESTIONS = 5;

const DECIDED = 'decided';

function strategize(context: ActorContext): Proposal {
  const request = readRequest(context);
  if (request.kind !== 'understood') return request;
  if (context.cursor === DECIDED) {
    if (context.last === null || context.last.status === 'succeeded') return { kind: 'done' };
    // Refused: with new commands there is something else to decide, without there is nothing.
    if (context.guidance.length === 0) return { kind: 'fail', message: `the strategy was refused: ${reasonOf(context.last)}` };
  }
  const added = guidanceOf(context).flatMap((text) => understoodCommands(text));
  const all = [...request.commands, ...added].map((command, index) => `${index + 1}. ${describeCommand(command)}`);
  const shown = all.slice(0, 30).join('; ');
  return {
    kind: 'decide',
    stepId: 'strategy',
    decision: {
      type: 'strategy_choice',
      question: 'What does the message ask for?',
      chosen: `${all.length} ${all.length === 1 ? 'command' : 'commands, in this order'}: ${shown}${all.length > 30 ? '; …' : ''}`,
      alternatives: [],
      rationale: 'The message consists of commands of the documented language; they are run as they are written.',
    },
    cursor: DECIDED,
  };
}

function execute(context: ActorContext): Proposal {
  const request = readRequest(context);
  if (request.kind !== 'understood') return request;
  const steps = [...commandSteps(request.commands, 1)];
  let number = request.commands.length + 1;
  for (const text of guidanceOf(context)) {
    if (text.trim() === '') continue;
    const commands = understoodCommands(text);
    if (commands.length === 0) steps.push(noteStep(text, `guidance-${steps.length}`));
    else steps.push(...commandSteps(commands, number));
    number += commands.length;
  }

  const index = context.cursor ?? 0;
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) {
    return { kind: 'fail', message: `the commands cannot go on: ${JSON.stringify(context.cursor)} is not a place in them` };
  }
  const previous = steps[index - 1];
  const failure = context.last !== null && context.last.status !== 'succeeded' ? context.last : null;
  if (failure !== null && previous !== undefined && previous.ifFailed === 'stop') {
    return { kind: 'fail', message: `${previous.label}: ${failure.status}: ${reasonOf(failure)}` };
  }
  const step = steps[index];
  return step === undefined ? { kind: 'done' } : step.propose(context, index + 1);
}

interface CommandStep {
  readonly id: string;
  /** For messages: `command 2 (write notes.md)`. */
  readonly label: string;
  /** Whether the commands end when this step fails or is refused. A look that fails is said and passed by; a change that fails is not. */
  readonly ifFailed: 'stop' | 'go on';
  readonly propose: (context: ActorContext, cursor: number) => Proposal;
}

type Request = { readonly kind: 'understood'; readonly commands: readonly Command[] } | Extract<Proposal, { kind: 'ask' | 'fail' }>;

/** The commands to run: those of the message, or of the answer to the last question about it. */
function readRequest(context: ActorContext): Request {
  const answers: string[] = [];
  for (;;) {
    const result = context.results.get(questionId(answers.length + 1));
    if (result === undefined) break;
    if (result.status !== 'succeeded') return { kind: 'fail', message: `what to do stayed open: ${reasonOf(result)}` };
    answers.push(typeof result.value === 'string' ? result.value : JSON.stringify(result.value));
  }
  const latest = answers.at(-1);
  const { commands, problems } = parseCommands(latest ?? messageOf(context));
  const isAnswerable = latest === undefined || commands.some((command) => command.kind !== 'help');
  if (problems.length === 0 && commands.length > 0 && isAnswerable) return { kind: 'understood', commands };
  if (answers.length >= MAX_QUESTIONS) {
    return {
      kind: 'fail',
      message: `after ${answers.length} questions there are still no commands to run; see docs/commands.md or send help`,
    };
  }
  return {
    kind: 'ask',
    stepId: questionId(answers.length + 1),
    question: questionAbout(problems),
    cursor: context.phase === 'execute' ? 0 : null,
  };
}

function questionId(number: number): string {
  return `clarify-${number}`;
}

function questionAbout(problems: readonly CommandProblem[]): string {
  const shown = problems.slice(0, 5).map(({ line, text, hint }) => `line ${line}${text === '' ? '' : ` (${text.slice(0, 80)})`}: ${hint}`);
  const intro = shown.length === 0 ? 'What should be done?' : `Nothing has been done, since this was not understood:\n${shown.join('\n')}`;
  return `${intro}\n\n${COMMAND_HELP}\n\nAnswer with all the commands; they take the place of the message.`;
}

function messageOf(context: ActorContext): string {
  const text = Object.hasOwn(context.arguments, 'text') ? context.arguments['text'] : undefined;
  return typeof text === 'string' ? text : context.input;
}

function guidanceOf(context: ActorContext): readonly string[] {
  return [...context.earlierGuidance, ...context.guidance];
}

/** The commands of a guidance text; none unless all of it is understood. */
function understoodCommands(text: string): readonly Command[] {
  const { commands, problems } = parseCommands(text);
  return problems.length === 0 ? commands : [];
}

function noteStep(text: string, id: string): CommandStep {
  const said = `This guidance has no commands that are understood, so it changes nothing: ${JSON.stringify(text.slice(0, 200))}. Send "help" for the list.`;
  return { id, label: 'guidance', ifFailed: 'go on', propose: (_, cursor) => ({ kind: 'say', stepId: id, text: said, cursor }) };
}

function* commandSteps(commands: readonly Command[], firstNumber: number): Generator<CommandStep> {
  for (const [index, command] of commands.entries()) yield* stepsOf(command, firstNumber + index);
}

function stepsOf(command: Command, number: number): readonly CommandStep[] {
  const id = `command-${number}`;
  const label = `command ${number} (${describeCommand(command)})`;
  const calling = (stepId: string, call: ProposedCall, ifFailed: CommandStep['ifFailed']): CommandStep => {
    const onRefused = ifFailed === 'stop' ? 'fail' : 'continue';
    return { id: stepId, label, ifFailed, propose: (_, cursor) => ({ kind: 'calls', stepId, calls: [call], onRefused, cursor }) };
  };
  const change = (tool: string, args: ProposedCall['arguments']) => [calling(id, { tool, arguments: args }, 'stop')];
  const look = (tool: string, args: ProposedCall['arguments']) => [
    calling(id, { tool, arguments: args }, 'go on'),
    showing(command, id, label),
  ];
  switch (command.kind) {
    case 'read':
      return look('read_file', { path: command.path });
    case 'list':
      return look('list_directory', command.path === null ? {} : { path: command.path });
    case 'search':
      return look('search_code', { query: command.query });
    case 'write':
      return change('write_file', { path: command.path, content: command.content });
    case 'delete':
      return change('delete_file', { path: command.path });
    case 'move':
      return change('move_file', { from: command.from, to: command.to });
    case 'replace': {
      const { path, oldText, newText, all } = command;
      return change('edit_file', { path, old_text: oldText, new_text: newText, ...(all ? { replace_all: true } : {}) });
    }
    case 'append':
      return change('write_file', { path: command.path, content: command.content, append: true });
    case 'call':
      return [calling(id, { tool: command.tool, arguments: command.arguments }, 'stop'), showing(command, id, label)];
    case 'say':
    case 'help': {
      const text = command.kind === 'help' ? COMMAND_HELP : command.text;
      return [{ id, label, ifFailed: 'go on', propose: (_, cursor) => ({ kind: 'say', stepId: id, text, cursor }) }];
    }
    case 'ask':
      return [{ id, label, ifFailed: 'stop', propose: (_, cursor) => ({ kind: 'ask', stepId: id, question: command.text, cursor }) }];
  }
}

/** Hands on what a call answered, so that a client sees it whatever it is; or says why there is nothing to hand on. */
function showing(command: Command, callId: string, label: string): CommandStep {
  const stepId = `${callId}-result`;
  return {
    id: stepId,
    label,
    ifFailed: 'go on',
    propose({ last, results }, cursor) {
      const result = last ?? results.get(callId);
      if (result === undefined) return { kind: 'fail', message: `${label}: its result is missing` };
      if (result.status !== 'succeeded') return { kind: 'say', stepId, text: `${label}: ${result.status}: ${reasonOf(result)}`, cursor };
      return { kind: 'artifact', stepId, artifact: { artifactId: stepId, ...showResult(command, result.value) }, cursor };
    },
  };
}

function reasonOf(result: StepResult): string {
  return result.reason ?? 'no reason was given';
}
