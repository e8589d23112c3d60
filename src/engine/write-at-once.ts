/**
 * One write of a plan without a sandbox: made for the project's head, recorded with all that is sent, committed by compare-and-set under the
 * call's own key, settled. Whatever is interrupted goes on from the record: the same is sent again, and the project does it once.
 *
 * Each path that it writes has to be as the plan last knew it: as it read or wrote it, else as it was when the write was asked for. What was
 * changed by others meanwhile is never overwritten; a tool that reads a file within its own call makes its write for what it read.
 */
import type { CommittedOutcome, ProjectPort, TreeChange } from '../app/ports.ts';
import { type CommittedWrite, entryAs, isAsKnown, type PathChange, type SentWrite } from '../core/plan/at-once.ts';
import type { SettleOutcome } from '../core/plan/commands.ts';
import { type Call, haltOf, type Plan } from '../core/plan/plan.ts';
import { type Changes, changesBetween, normaliseChanges } from '../core/workspace/changes.ts';
import type { Tree } from '../core/workspace/tree.ts';
import type { PlanWorkspace, WorkspaceView } from './plan-workspace.ts';
import { putMissingBlobs } from './put-blobs.ts';
import type { PlanHost } from './run-plan.ts';
import { watchReads } from './watch-reads.ts';

/** How often a write is made anew for a head that has moved, in one go. */
const MAX_MOVES = 8;

/** Longest account of a write's paths, as JSON: rows of the log end at 64 kB and hold it twice. */
const MAX_WRITE_CHARACTERS = 12 * 1024;

export interface WriteAtOnce {
  readonly host: PlanHost;
  readonly project: ProjectPort;
  readonly workspace: PlanWorkspace;
  readonly call: Call;
  /** Lets the tool say what it would write to the files that it sees; nothing leaves by it. */
  readonly prepare: (view: WorkspaceView) => Promise<SettleOutcome>;
}

/** False: not now; the state says what is to be done. Throws when the project cannot be reached. */
export async function writeAtOnce(job: WriteAtOnce): Promise<boolean> {
  const { host, call } = job;
  const settle = (outcome: SettleOutcome): boolean => host.execute({ type: 'settle', callId: call.id, attempt: call.attempt, outcome }).ok;
  let found = current(host, call);
  if (found === null) return false;
  if (found.plan.terminal) return close(job, found.open, settle);
  if (found.open.status === 'authorised') {
    const outcome = await aim(job);
    if (outcome !== 'sent') return outcome !== null && settle(outcome);
  }
  for (let moves = 0; ; moves += 1) {
    found = current(host, call);
    const write = found?.open.write;
    if (found === null || write === undefined) return false;
    const answer = await send(job, found.plan, write);
    if (answer === null) return false;
    if (answer !== 'moved') return settle(answer);
    if (moves === MAX_MOVES) {
      return settle(failure('head_moves', 'the project changes too fast for the write to be made; nothing was written', true));
    }
    const outcome = await aim(job);
    if (outcome !== 'sent') return outcome !== null && settle(outcome);
  }
}

function current(host: PlanHost, { id, attempt }: Call): { readonly plan: Plan; readonly open: Call } | null {
  const plan = host.plan();
  const open = plan?.calls[id];
  return plan === null || open === undefined || open.attempt !== attempt ? null : { plan, open };
}

/** Makes the write for the head as it is now and records it. Null: it may not begin now. Otherwise how the call ends without a write. */
async function aim({ host, workspace, call, prepare }: WriteAtOnce): Promise<'sent' | SettleOutcome | null> {
  const plan = host.plan();
  if (plan === null) return null;
  const view = await workspace.view(plan);
  const { head, tree } = view;
  if (mayNotBegin(host) || head === null) return null;
  const watched = watchReads(view);
  const outcome = await prepare({ ...view, reader: watched.reader });
  if (outcome.status !== 'succeeded') return outcome;
  const wanted = new Map(outcome.changes);
  const changes = normaliseChanges(tree, wanted);
  // The project is as it should be: there is nothing to send.
  if (changes.size === 0) return { ...outcome, changes: [], blobs: new Map(), seen: beforeOf(tree, wanted) };
  const readItself = new Set(watched.seen().flatMap(([path, { kind }]) => (kind === 'write' ? [path] : [])));
  const lost = (await knownOf(workspace, plan, call, changes)).filter(
    ([path, known]) => !readItself.has(path) && !isAsKnown(tree.entries.get(path), known),
  );
  if (lost.length > 0) return conflict(lost);
  const before = beforeOf(tree, changes);
  if (JSON.stringify([...changes, ...before]).length > MAX_WRITE_CHARACTERS)
    return failure('too_large', `the call would write ${changes.size} files at once; write fewer with one call`);
  const { result, reportedUsd, taint, blobs } = outcome;
  const write = { head, changes: [...changes], before, result, reportedUsd, taint, blobs };
  return host.execute({ type: 'mark_sent', callId: call.id, attempt: call.attempt, write }).ok ? 'sent' : null;
}

/** Sends what was recorded. Null: the plan has ended or is halted, and nothing is sent now. */
async function send(job: WriteAtOnce, plan: Plan, write: SentWrite): Promise<SettleOutcome | 'moved' | null> {
  const { host, project, call } = job;
  const digests = write.changes.flatMap(([, change]) => (change.kind === 'write' ? [change.blob] : []));
  const put = await putMissingBlobs(project, digests, (digest) => host.blob(digest));
  if (!put.ok) return failure('not_written', put.error.message);
  // The plan may have been cancelled or halted while blobs travelled; from the commit on there is no way back.
  if (mayNotBegin(host)) return null;
  const committed = await project.commit({
    commitId: write.commitId,
    expectedHead: write.head,
    mode: 'patch',
    changes: write.changes.map(
      ([path, change]): TreeChange => ({
        path,
        entry: change.kind === 'delete' ? null : { mode: change.mode, blob: change.blob, sizeBytes: change.sizeBytes },
      }),
    ),
    message: `${plan.action.name}: ${call.tool} (plan ${plan.id}, call ${call.id})`,
    by: plan.id,
  });
  if (committed.ok)
    return committed.value.status === 'moved' ? 'moved' : { status: 'written', ...(await writtenBy(job, write, committed.value)) };
  // An earlier sending of this call got there first, for another head: that one is the call's write.
  const earlier = committed.error.kind === 'already_exists' ? await project.committed(write.commitId) : null;
  if (earlier !== null) return { status: 'written', ...(await writtenBy(job, write, earlier)) };
  return failure('not_written', committed.error.message);
}

/** The plan has ended while the write was on its way: nothing more is sent, and what the project holds is told. */
async function close(job: WriteAtOnce, { write }: Call, settle: (outcome: SettleOutcome) => boolean): Promise<boolean> {
  if (write === undefined) return false;
  const done = await job.project.committed(write.commitId);
  return settle(
    done === null
      ? failure('not_written', 'the plan ended before it was sent; nothing was written')
      : { status: 'written', ...(await writtenBy(job, write, done)) },
  );
}

/** What a commit changed, by its own trees where it was not made for the head that was recorded last. */
async function writtenBy({ workspace }: WriteAtOnce, write: SentWrite, { head, previous }: CommittedOutcome): Promise<CommittedWrite> {
  if (previous === write.head) return { head, previous, changes: write.changes, before: write.before };
  const [from, to] = [await workspace.treeOf(previous), await workspace.treeOf(head)];
  const changes = changesBetween(from, to);
  return { head, previous, changes: [...changes], before: beforeOf(from, changes) };
}

function beforeOf(tree: Tree, changes: Changes): readonly PathChange[] {
  return [...changes.keys()].map((path): PathChange => [path, entryAs(tree.entries.get(path))]);
}

/** The paths that are to be written, as the plan last knew them. */
async function knownOf(workspace: PlanWorkspace, plan: Plan, call: Call, changes: Changes): Promise<readonly PathChange[]> {
  const seen = new Map(plan.seen);
  const unseen = new Map([...changes].filter(([path]) => !seen.has(path)));
  const asked = unseen.size === 0 || call.askedHead === undefined ? [] : beforeOf(await workspace.treeOf(call.askedHead), unseen);
  return [...[...changes.keys()].flatMap((path): PathChange[] => pairOf(path, seen.get(path))), ...asked];
}

function pairOf(path: string, known: PathChange[1] | undefined): PathChange[] {
  return known === undefined ? [] : [[path, known]];
}

/** It stays one until the plan has read the files again: what it knew of them is kept, also where it had never read them. */
function conflict(lost: readonly PathChange[]): SettleOutcome {
  const paths = lost.map(([path]) => `'${path}'`).join(', ');
  const [were, them] = lost.length === 1 ? ['was', 'it'] : ['were', 'them'];
  const message = `${paths} ${were} changed in the project since this plan last knew ${them}; nothing was written. Read ${them} again before writing ${them}.`;
  return { ...failure('conflict', message), seen: lost };
}

function mayNotBegin(host: PlanHost): boolean {
  const plan = host.plan();
  return plan === null || plan.terminal || haltOf(plan) !== null;
}

function failure(code: string, message: string, transient = false): Extract<SettleOutcome, { status: 'failed' }> {
  return { status: 'failed', error: { code, message, transient }, dispatched: false, reportedUsd: undefined };
}
