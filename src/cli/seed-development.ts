/**
 * What a new state folder is filled with before the server is announced: an org with two keys, and then, through the service like any
 * caller, the examples and one plan that waits for its approval.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PlanView } from '../api/views.ts';
import { type Client, createClient } from '../client/client.ts';
import { DuplicateEntityError } from '../client/errors.ts';
import { type BootstrappedOrg, bootstrapOrg } from './bootstrap-org.ts';
import { EXAMPLE_PROJECT, EXAMPLE_PROJECT_DIRECTORY, readExampleActions } from './example-files.ts';
import { nextSteps } from './next-steps.ts';
import { readWalked, walkTree } from './walk-tree.ts';

/** What the seed may use. */
export interface SeedContext {
  readonly url: string;
  readonly d1: D1Database;
  /** The server asks for no keys, so none is shown. */
  readonly open: boolean;
}

/** What the seed made: the development org with its two keys, and lines for the newcomer about what to try next. */
export interface SeedResult extends BootstrappedOrg {
  readonly nextSteps: readonly string[];
}

const ORG = 'dev';
const DEFAULT_ACTION = 'commands';
const EXAMPLE_ACTION = 'edit-three-files';

/** How long the example plan may take until it waits; then the newcomer is told how to look for himself. */
const PLAN_TIMEOUT_MS = 10_000;
const POLL_MS = 50;

/**
 * Fills a new state folder. Called when the folder has no connection file; so a start that was interrupted calls it again, and
 * it accepts what an earlier attempt left, and changes nothing that somebody has changed since.
 */
export async function seedDevelopment({ url, d1, open }: SeedContext): Promise<SeedResult> {
  const keys = await bootstrapOrg(d1, ORG);
  const person = createClient({ url, key: keys.key });
  await Promise.all([addExampleActions(person), importExampleProject(person)]);
  await setDefaults(person);
  // As an agent would: it starts the work, and the person's key approves it.
  const plan = await startExamplePlan(createClient({ url, key: keys.agent_key }));
  return { ...keys, nextSteps: nextSteps({ url, agentKey: open ? null : keys.agent_key, project: EXAMPLE_PROJECT, plan }) };
}

async function addExampleActions(client: Client): Promise<void> {
  const actions = await readExampleActions();
  await Promise.all(actions.map((action) => unlessThere(client.call('_cleveragents/action/add', { action }))));
}

/** Imports once: a project that has commits belongs to whoever made them. */
async function importExampleProject(client: Client): Promise<void> {
  const name = EXAMPLE_PROJECT;
  const settings = { description: 'A small program that greets, to try things on' };
  await unlessThere(client.call('_cleveragents/project/create', { name, settings }));
  const { commits, head } = await client.call('_cleveragents/project/show', { name });
  if (commits > 0) return;

  const { files } = await walkTree(EXAMPLE_PROJECT_DIRECTORY);
  const blobs = files.map(async (file) => ({
    digest: file.digest,
    base64: Buffer.from(await readWalked(EXAMPLE_PROJECT_DIRECTORY, file)).toString('base64'),
  }));
  await client.call('_cleveragents/project/blob/put', { name, blobs: await Promise.all(blobs) });
  await client.call('_cleveragents/project/commit', {
    name,
    commit_id: 'development-example',
    expected_head: head,
    mode: 'replace',
    changes: files.map(({ path, mode, digest, sizeBytes }) => ({ path, entry: { mode, digest, size_bytes: sizeBytes } })),
    message: 'The example project',
  });
}

/** What a message or a call uses that names nothing. The profile is left to the actions: theirs is `supervised`. */
async function setDefaults(client: Client): Promise<void> {
  const { settings } = await client.call('_cleveragents/config/list', {});
  const defaults = [
    ['core.default-action', DEFAULT_ACTION],
    ['core.default-project', EXAMPLE_PROJECT],
  ] as const;
  for (const [key, value] of defaults) {
    const isUnset = settings.find((setting) => setting.key === key)?.is_default === true;
    if (isUnset) await client.call('_cleveragents/config/set', { key, value });
  }
}

/** Uses the example action once, and follows the plan until it waits for somebody or has ended. */
async function startExamplePlan(client: Client): Promise<PlanView> {
  let plan = await client.call('_cleveragents/plan/use', { action_name: EXAMPLE_ACTION, idempotency_key: 'development-example' });
  const deadlineMs = Date.now() + PLAN_TIMEOUT_MS;
  while (isMoving(plan) && Date.now() < deadlineMs) {
    await sleep(POLL_MS);
    plan = await client.call('_cleveragents/plan/status', { plan_id: plan.plan_id });
  }
  return plan;
}

function isMoving({ state }: PlanView): boolean {
  return state === 'queued' || state === 'running' || state === 'complete';
}

/** What is there already is as good as what would have been made. */
async function unlessThere(made: Promise<unknown>): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!(error instanceof DuplicateEntityError)) throw error;
  }
}
