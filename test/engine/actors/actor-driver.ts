import { createHash } from 'node:crypto';
import type { ActionDocument } from '../../../src/core/action.ts';
import type { Sha256 } from '../../../src/core/digest.ts';
import type { JsonObject, JsonValue } from '../../../src/core/json.ts';
import type { Proposal, ProposedCall, StepResult } from '../../../src/core/plan/proposal.ts';
import { makeTree, type TreeEntry } from '../../../src/core/workspace/tree.ts';
import type { Actor, ActorContext } from '../../../src/engine/actors/actor.ts';
import { makeToolbox } from '../../../src/engine/tools/toolbox.ts';
import { makeTreeWorkspace } from '../../../src/engine/tools/tree-workspace.ts';
import { WORKSPACE_TOOL_PACKAGE } from '../../../src/engine/tools/workspace-tools.ts';

/** What happens around an actor in one run: files, answers, guidance, refusals. No guards and no log: those are the plan's. */
export interface Scene {
  readonly args?: JsonObject;
  readonly input?: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Answers to questions, in their order; a question without one is refused. */
  readonly answers?: readonly string[];
  /** Guidance that arrives before the n-th proposal (from 0, over both phases). */
  readonly guidance?: Readonly<Record<number, string>>;
  /** Judges a step before it happens; null lets it happen. */
  readonly refuse?: (proposal: Proposal) => string | null;
  /** Tools beside the workspace's: name → result. */
  readonly tools?: Readonly<Record<string, JsonValue>>;
}

export interface Run {
  readonly proposals: readonly Proposal[];
  readonly end: Extract<Proposal, { kind: 'done' | 'fail' }>;
  readonly files: Readonly<Record<string, string>>;
}

/** Runs both phases of an action with the real workspace tools, as a plan would that allows everything. */
export async function runActor(actor: Actor, action: ActionDocument, scene: Scene = {}): Promise<Run> {
  const desk = new Desk(scene);
  for (const phase of ['strategize', 'execute'] as const) {
    let cursor: JsonValue = null;
    let last: StepResult | null = null;
    for (;;) {
      const context = desk.context(action, phase, cursor, last);
      const proposal = await actor.propose(context);
      // An actor that answers another proposal to the same context could not be resumed after a crash.
      const again = await actor.propose(structuredClone(context));
      if (JSON.stringify(again) !== JSON.stringify(proposal)) throw new Error('the actor is not deterministic');
      desk.proposals.push(proposal);
      if (proposal.kind === 'fail') return { proposals: desk.proposals, end: proposal, files: desk.files };
      if (proposal.kind === 'done') break;
      if (desk.proposals.length > 500) throw new Error('the actor does not come to an end');
      last = await desk.deal(proposal);
      desk.results.set(proposal.stepId, last);
      // Cursors are stored as JSON.
      cursor = JSON.parse(JSON.stringify(proposal.cursor)) as JsonValue;
    }
  }
  return { proposals: desk.proposals, end: { kind: 'done' }, files: desk.files };
}

export function contextOf(action: ActionDocument, overrides: Partial<ActorContext> = {}): ActorContext {
  return {
    action,
    arguments: {},
    phase: 'execute',
    cursor: null,
    results: new Map(),
    input: '',
    messageIds: [],
    guidance: [],
    earlierGuidance: [],
    attempt: 1,
    last: null,
    ...overrides,
  };
}

/** The calls of a run in their order. */
export function callsIn({ proposals }: Run): readonly ProposedCall[] {
  return proposals.flatMap((proposal) => (proposal.kind === 'calls' ? proposal.calls : []));
}

const sha256: Sha256 = (data) => createHash('sha256').update(data).digest('hex');
const decoder = new TextDecoder();

class Desk {
  readonly proposals: Proposal[] = [];
  readonly results = new Map<string, StepResult>();
  files: Record<string, string>;
  private readonly scene: Scene;
  private readonly answers: string[];
  private seen: string[] = [];

  constructor(scene: Scene) {
    this.scene = scene;
    this.files = { ...scene.files };
    this.answers = [...(scene.answers ?? [])];
  }

  context(action: ActionDocument, phase: ActorContext['phase'], cursor: JsonValue, last: StepResult | null): ActorContext {
    const arriving = this.scene.guidance?.[this.proposals.length];
    const guidance = arriving === undefined ? [] : [arriving];
    const earlierGuidance = this.seen;
    this.seen = [...this.seen, ...guidance];
    const { args = {}, input = '' } = this.scene;
    return contextOf(action, { arguments: args, input, phase, cursor, last, guidance, earlierGuidance, results: new Map(this.results) });
  }

  async deal(proposal: Exclude<Proposal, { kind: 'done' | 'fail' }>): Promise<StepResult> {
    const refusal = this.scene.refuse?.(proposal) ?? null;
    if (refusal !== null) return { status: 'refused', value: null, reason: refusal };
    if (proposal.kind === 'ask') {
      const answer = this.answers.shift();
      return answer === undefined ? { status: 'refused', value: null, reason: 'nobody answered' } : { status: 'succeeded', value: answer };
    }
    if (proposal.kind !== 'calls') return { status: 'succeeded', value: null };
    const outcomes: StepResult[] = [];
    for (const call of proposal.calls) outcomes.push(await this.perform(call));
    const worst = outcomes.find(({ status }) => status !== 'succeeded');
    const values = outcomes.map(({ value }) => value);
    const value = values.length === 1 ? (values[0] ?? null) : values;
    return worst === undefined ? { status: 'succeeded', value } : { ...worst, value };
  }

  private async perform(call: ProposedCall): Promise<StepResult> {
    const other = this.scene.tools;
    if (other !== undefined && Object.hasOwn(other, call.tool)) return { status: 'succeeded', value: other[call.tool] ?? null };
    const toolbox = makeToolbox([WORKSPACE_TOOL_PACKAGE]);
    const tool = toolbox.ok ? toolbox.value.find(call.tool) : null;
    if (tool === null) return { status: 'failed', value: null, reason: `there is no tool ${call.tool}` };
    const encoder = new TextEncoder();
    const blobs = new Map(Object.entries(this.files).map(([, text]) => [sha256(text), encoder.encode(text)]));
    const entries = Object.entries(this.files).map(
      ([path, text]): TreeEntry => ({ path, mode: '100644', blob: sha256(text), sizeBytes: encoder.encode(text).length }),
    );
    const tree = makeTree(entries);
    if (!tree.ok) throw new Error(tree.error.message);
    const outcome = await tool.perform(call.arguments, {
      workspace: makeTreeWorkspace(tree.value, async (blob) => blobs.get(blob) ?? null),
      signal: new AbortController().signal,
      idempotencyKey: 'key',
      sha256,
    });
    if (outcome.status === 'failed') return { status: 'failed', value: null, reason: outcome.error.message };
    for (const write of outcome.writes ?? []) {
      const { [write.path]: _, ...rest } = this.files;
      this.files = write.kind === 'remove' ? rest : { ...this.files, [write.path]: decoder.decode(write.bytes) };
    }
    return { status: 'succeeded', value: outcome.result };
  }
}
