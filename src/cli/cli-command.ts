import { approvalDecide } from '../api/approval.ts';
import { AUDIT_FORMATS, auditExport } from '../api/audit.ts';
import type { Operation } from '../api/operation.ts';
import { OPERATION_NAMES, OPERATIONS, type OperationName } from '../api/operations.ts';
import { orgLogExport } from '../api/org-log.ts';
import { decideShown } from './approval-commands.ts';
import { exportTrail, verifyOrgLog, verifyTrailFile } from './audit-commands.ts';
import { type CommandContext, checkedParams } from './command-context.ts';
import { EXIT } from './exit-code.ts';
import { type Flag, flagsOf } from './flags.ts';
import type { Outcome } from './output.ts';
import { exportProject } from './project-export.ts';
import { importProject } from './project-import.ts';
import { renderApproval } from './render/approval.ts';
import { renderFileVerdict, renderOrgVerdict } from './render/audit.ts';
import { renderGeneric } from './render/generic.ts';
import { printable } from './render/style.ts';
import { ROW_VIEWS, type RowView } from './row-views.ts';

/** One command of `agents` as data; `program.ts` hands the list to the parser. */
export interface CliCommand {
  /** Words after `agents`. */
  readonly words: readonly string[];
  readonly summary: string;
  readonly positional: readonly Flag[];
  readonly flags: readonly Flag[];
  readonly examples: readonly string[];
  /** Asks before it decides; gets `--yes`. */
  readonly asks: boolean;
  /** Works without a server. */
  readonly isOffline?: true;
  readonly run: (context: CommandContext) => Promise<Omit<Outcome, 'notes'>>;
}

/** All commands: one per row that names a command, and those that need several calls. */
export function cliCommands(): readonly CliCommand[] {
  return [
    ...OPERATION_NAMES.filter((name) => operationOf(name).cli !== undefined).map(rowCommand),
    ...approvalCommands(),
    ...projectCommands(),
    ...auditCommands(),
  ];
}

const operationOf = (name: OperationName): Operation => OPERATIONS[name];

function rowCommand<N extends OperationName>(name: N): CliCommand {
  const operation: Operation & { readonly name: N } = { ...operationOf(name), name };
  const view: RowView<N> = ROW_VIEWS[name] ?? {};
  const flags = flagsOf(operation)
    .filter((flag) => !(view.hidden ?? []).includes(flag.name))
    .map((flag): Flag => {
      const file = view.files?.[flag.name];
      return file === undefined ? flag : { ...flag, kind: 'text', description: file };
    });
  const positional = (operation.cli?.positional ?? []).flatMap((member) => flags.filter((flag) => flag.path.join('.') === member));
  return {
    words: operation.cli?.command ?? [],
    summary: operation.summary,
    positional,
    flags: flags.filter((flag) => !positional.includes(flag)),
    examples: operation.cli?.examples ?? [],
    asks: view.asks === true,
    run: async (context) => {
      const params = view.prepare === undefined ? context.params : await view.prepare(context);
      const result = await context.client.call(name, checkedParams(operation, params));
      const raw = view.raw?.(result);
      return {
        exitCode: view.exitCode?.(result) ?? EXIT.ok,
        data: result,
        render: (style) => view.render?.(result, style) ?? renderGeneric(result, style),
        ...(raw === undefined ? {} : { raw }),
      };
    },
  };
}

const argument = (name: string, description: string): Flag => ({
  name: name.replaceAll('_', '-'),
  path: [name],
  kind: 'text',
  choices: null,
  required: true,
  description,
});

/** `approvals approve|deny|answer`: the row's own flags, with the decision as a word of the command. */
function approvalCommands(): readonly CliCommand[] {
  const flags = flagsOf(approvalDecide);
  const only = (...members: readonly string[]): readonly Flag[] => flags.filter((flag) => members.includes(flag.path[0] ?? ''));
  const id = argument('approval_id', 'Approval id: <plan id>.<number>');
  const command = (
    decision: 'approve' | 'deny' | 'answer',
    rest: Pick<CliCommand, 'summary' | 'positional' | 'flags' | 'examples'>,
  ): CliCommand => ({
    ...rest,
    words: ['approvals', decision],
    asks: decision === 'approve',
    run: async (context) => {
      const decided = await decideShown(context, decision);
      return {
        exitCode: EXIT.ok,
        data: decided,
        render: (style) => `${renderApproval(decided.approval, style)}\n${printable(`plan ${decided.plan.phase}/${decided.plan.state}`)}`,
      };
    },
  });
  return [
    command('approve', {
      summary: 'Approve one thing: shows it first and sends the digest of what was shown',
      positional: [id],
      flags: only('reason', 'digest', 'grant'),
      examples: ['01HXRCF1ABCDE12345678901AB.12', '01HXRCF1ABCDE12345678901AB.12 --cost-usd 0.50'],
    }),
    command('deny', {
      summary: 'Deny one thing; the reason is told to the actor',
      positional: [id],
      flags: only('reason', 'digest'),
      examples: ['01HXRCF1ABCDE12345678901AB.12 --reason "not this file"'],
    }),
    command('answer', {
      summary: 'Answer a question',
      positional: [id, argument('text', 'The answer, or one of the choices')],
      flags: only('reason', 'digest'),
      examples: ['01HXRCF1ABCDE12345678901AB.12 "use the second one"'],
    }),
  ];
}

/** `project import|export`: many calls behind one command. */
function projectCommands(): readonly CliCommand[] {
  const flag = (name: string, description: string, required: boolean): Flag => ({ ...argument(name, description), required });
  return [
    {
      words: ['project', 'import'],
      summary: 'Make a directory the head of a project; respects .gitignore, keeps the executable bit and links inside it',
      positional: [argument('dir', 'Directory')],
      flags: [
        flag('name', 'Name of the project; it is made if it does not exist', true),
        flag('message', 'Why; kept in the history', false),
      ],
      examples: ['. --name web'],
      asks: false,
      run: async (context) => {
        const result = await importProject(context);
        return { exitCode: EXIT.ok, data: result, render: (style) => renderGeneric({ ...result, skipped: result.skipped.length }, style) };
      },
    },
    {
      words: ['project', 'export'],
      summary: "Write the project's head into a new or empty directory",
      positional: [argument('name', 'Name of the project'), argument('dir', 'Directory')],
      flags: [],
      examples: ['web ./web-result'],
      asks: false,
      run: async (context) => {
        const result = await exportProject(context);
        return { exitCode: EXIT.ok, data: result, render: (style) => renderGeneric(result, style) };
      },
    },
  ];
}

/** `audit export|verify`, `org log export|verify`: a log as a file, and whether file or log hold. */
function auditCommands(): readonly CliCommand[] {
  const flag = (name: string, description: string): Flag => ({ ...argument(name, description), required: false });
  const plan = argument('plan_id', 'Plan id');
  const exporting = (
    operation: typeof auditExport | typeof orgLogExport,
    rest: Pick<CliCommand, 'words' | 'summary' | 'positional' | 'examples'>,
  ): CliCommand => ({
    ...rest,
    flags: [
      flag('out', 'File; default standard output'),
      { ...flag('as', 'jsonl: verifiable rows; csv: audit entries; default by the name of the file'), choices: AUDIT_FORMATS },
    ],
    asks: false,
    run: async (context) => {
      const { result, text } = await exportTrail(context, operation);
      const isFile = result.file !== undefined;
      return {
        exitCode: EXIT.ok,
        data: isFile ? result : { ...result, content: text },
        render: (style) => renderGeneric(result, style),
        ...(isFile ? {} : { raw: Buffer.from(text) }),
      };
    },
  });
  return [
    exporting(auditExport, {
      words: ['audit', 'export'],
      summary: "Write a plan's log with its signed heads, or its audit entries as CSV",
      positional: [plan],
      examples: ['01HXRCF1ABCDE12345678901AB --out trail.jsonl', '01HXRCF1ABCDE12345678901AB --out trail.csv'],
    }),
    exporting(orgLogExport, {
      words: ['org', 'log', 'export'],
      summary: "Write the org's own log with its signed heads, or its entries as CSV",
      positional: [],
      examples: ['--out org-log.jsonl', '--out org-log.csv'],
    }),
    {
      words: ['org', 'log', 'verify'],
      summary: "Check the org's own log, and every plan that it knows against what the plan once reported of its log",
      positional: [],
      flags: [flag('plan_id', 'Of the plans only this one')],
      examples: ['', '--plan-id 01HXRCF1ABCDE12345678901AB'],
      asks: false,
      run: async (context) => {
        const verdict = await verifyOrgLog(context);
        return { exitCode: verdict.valid ? EXIT.ok : EXIT.error, data: verdict, render: (style) => renderOrgVerdict(verdict, style) };
      },
    },
    {
      words: ['audit', 'verify'],
      summary: 'Check an exported log: every hash, the signed heads, and that nothing is missing at the end',
      positional: [argument('file', 'File of audit export (jsonl)')],
      flags: [
        flag('jwks', "Keys: an address or a file; default the known server's /.well-known/jwks.json"),
        { ...flag('chain_only', 'Check the hashes alone; a cut or replaced file may then look whole'), kind: 'boolean' },
      ],
      examples: ['trail.jsonl --jwks keys.json'],
      asks: false,
      isOffline: true,
      run: async (context) => {
        const verdict = await verifyTrailFile(context);
        return { exitCode: verdict.valid ? EXIT.ok : EXIT.error, data: verdict, render: (style) => renderFileVerdict(verdict, style) };
      },
    },
  ];
}
