/**
 * Tenant walls (design section 4, invariant 10): what another org has is answered exactly like what nobody has. The table names every
 * operation; a new row without an entry does not compile.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { OPERATION_NAMES, type OperationName } from '../../src/api/operations.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { blobOf, makeService, type TestCaller, type TestService } from './service.ts';

/** Names of one org's things, each a text that stands nowhere else. */
interface World {
  readonly action: string;
  readonly project: string;
  readonly session: string;
  readonly profile: string;
  readonly keyId: string;
  readonly planId: string;
  readonly approvalId: string;
}

/** Things that nobody has. */
const NOTHING: World = {
  action: 'nothing-action',
  project: 'nothing-project',
  session: 'nothing-session',
  profile: 'nothing/profile',
  keyId: '01JZZZZZZZZZZZZZZZZZZZZZZ0',
  planId: '01JZZZZZZZZZZZZZZZZZZZZZZ1',
  approvalId: '01JZZZZZZZZZZZZZZZZZZZZZZ1.7',
};

type Wall =
  /** Is refused, and the refusal is that of an unknown thing. */
  | { readonly refuses: (world: World) => object; readonly kind: Refusal['kind'] }
  /** Answers the caller's own things only; `shows` is what its owner sees there, if anything. */
  | { readonly lists: (world: World) => object; readonly shows: (world: World) => string | null }
  /** Makes a thing of the caller's own under the same name. */
  | { readonly makes: (world: World) => object };

const { put, entry } = blobOf('content');
const onPlan = { refuses: ({ planId }: World) => ({ plan_id: planId }), kind: 'not_found' } as const;
const onTool = { refuses: ({ planId }: World) => ({ plan_id: planId, tool: 'write_file' }), kind: 'not_found' } as const;
const inProject = (rest: object = {}) => ({ refuses: ({ project }: World) => ({ name: project, ...rest }), kind: 'not_found' }) as const;
const listing = (member: keyof World, params: object = {}) => ({ lists: () => params, shows: (world: World) => world[member] });
const ofNobody = { lists: () => ({}), shows: () => null };

const WALLS: { readonly [N in OperationName]: Wall | readonly Wall[] } = {
  '_cleveragents/action/add': {
    makes: ({ action }) => ({ action: { name: action, description: 'Of the other org', actor: 'scripted/commands' } }),
  },
  '_cleveragents/action/show': { refuses: ({ action }) => ({ name: action }), kind: 'not_found' },
  '_cleveragents/action/list': listing('action'),
  '_cleveragents/registry/action/list': listing('action'),
  '_cleveragents/registry/tool/list': ofNobody,
  '_cleveragents/registry/actor/list': ofNobody,
  '_cleveragents/registry/project/list': listing('project'),
  '_cleveragents/profile/list': listing('profile'),
  '_cleveragents/profile/show': { refuses: ({ profile }) => ({ name: profile }), kind: 'not_found' },
  '_cleveragents/profile/add': [
    { makes: ({ profile }) => ({ profile: { name: profile, description: 'Of the other org' } }) },
    { refuses: ({ profile }) => ({ profile: { name: 'theirs', extends: profile } }), kind: 'invalid' },
  ],
  '_cleveragents/profile/update': { refuses: ({ profile }) => ({ name: profile, profile: { edit_code: 0 } }), kind: 'not_found' },
  '_cleveragents/profile/calibration': [
    { refuses: ({ action }) => ({ action }), kind: 'not_found' },
    { refuses: ({ project }) => ({ project }), kind: 'not_found' },
  ],
  '_cleveragents/profile/delete': { refuses: ({ profile }) => ({ name: profile }), kind: 'not_found' },
  '_cleveragents/org/policy/show': { lists: () => ({}), shows: ({ profile }) => profile },
  '_cleveragents/org/policy/set': { makes: () => ({ policy: { guardrails: { max_steps: 1 } } }) },
  '_cleveragents/org/log/list': { lists: () => ({ type: ['policy_changed'] }), shows: ({ profile }) => profile },
  '_cleveragents/org/log/verify': [ofNobody, onPlan],
  '_cleveragents/org/log/export': { lists: () => ({}), shows: ({ profile }) => profile },
  '_cleveragents/org/log/head': ofNobody,
  '_cleveragents/project/create': { makes: ({ project }) => ({ name: project, settings: { description: 'Of the other org' } }) },
  '_cleveragents/project/blob/missing': inProject({ digests: [put.digest] }),
  '_cleveragents/project/blob/put': inProject({ blobs: [put] }),
  '_cleveragents/project/commit': inProject({
    commit_id: 'mine',
    expected_head: null,
    mode: 'patch',
    changes: [{ path: 'secret.txt', entry }],
  }),
  '_cleveragents/project/show': inProject(),
  '_cleveragents/project/list': listing('project'),
  '_cleveragents/project/tree': inProject(),
  '_cleveragents/project/file/read': inProject({ path: 'secret.txt' }),
  '_cleveragents/project/export': inProject(),
  'session.create': { makes: ({ session }) => ({ session_id: session, actor_name: 'of/the-other-org' }) },
  'session.list': listing('session'),
  'session.show': { refuses: ({ session }) => ({ session_id: session }), kind: 'not_found' },
  'session.close': { refuses: ({ session }) => ({ session_id: session, cancel_plans: true }), kind: 'not_found' },
  '_cleveragents/key/create': { makes: () => ({ name: 'theirs', kind: 'human', roles: ['admin'] }) },
  '_cleveragents/key/list': listing('keyId'),
  '_cleveragents/key/revoke': { refuses: ({ keyId }) => ({ key_id: keyId }), kind: 'not_found' },
  '_cleveragents/config/get': {
    refuses: ({ project }) => ({ key: 'core.automation-profile', scope: 'project', project }),
    kind: 'not_found',
  },
  '_cleveragents/config/set': [
    { refuses: ({ project }) => ({ key: 'core.automation-profile', scope: 'project', project, value: 'auto' }), kind: 'not_found' },
    { refuses: ({ action }) => ({ key: 'core.default-action', value: action }), kind: 'invalid' },
    { refuses: ({ project }) => ({ key: 'core.default-project', value: project }), kind: 'invalid' },
    { refuses: ({ profile }) => ({ key: 'core.automation-profile', value: profile }), kind: 'invalid' },
  ],
  '_cleveragents/config/list': [listing('action'), { refuses: ({ project }) => ({ scope: 'project', project }), kind: 'not_found' }],
  '_cleveragents/health/check': ofNobody,
  'rpc.discover': ofNobody,
  '_cleveragents/plan/checkpoint/list': onPlan,
  '_cleveragents/push/list': onPlan,
  '_cleveragents/push/retry': onPlan,
  '_cleveragents/plan/preflight': { lists: ({ action }) => ({ action_name: action }), shows: () => null },
  '_cleveragents/plan/use': { refuses: ({ action }) => ({ action_name: action }), kind: 'not_found' },
  '_cleveragents/plan/execute': onPlan,
  '_cleveragents/plan/status': onPlan,
  '_cleveragents/plan/diff': onPlan,
  '_cleveragents/plan/artifacts': onPlan,
  '_cleveragents/plan/tree': onPlan,
  '_cleveragents/plan/apply': { refuses: ({ planId }) => ({ plan_id: planId, approve: true }), kind: 'not_found' },
  '_cleveragents/plan/cancel': onPlan,
  '_cleveragents/plan/list': [listing('planId'), { lists: ({ session }) => ({ session_id: session }), shows: ({ planId }) => planId }],
  '_cleveragents/plan/prompt': { refuses: ({ planId }) => ({ plan_id: planId, guidance: 'Do it' }), kind: 'not_found' },
  '_cleveragents/plan/guard/show': onPlan,
  '_cleveragents/audit/export': onPlan,
  '_cleveragents/audit/head': onPlan,
  '_cleveragents/plan/guard/audit': onPlan,
  '_cleveragents/plan/guard/audit/verify': onPlan,
  '_cleveragents/plan/guard/set': { refuses: ({ planId }) => ({ plan_id: planId, guardrails: { max_steps: 1 } }), kind: 'not_found' },
  '_cleveragents/plan/guard/denylist/add': onTool,
  '_cleveragents/plan/guard/denylist/remove': onTool,
  '_cleveragents/plan/guard/allowlist/add': onTool,
  '_cleveragents/plan/guard/allowlist/remove': onTool,
  '_cleveragents/plan/guard/confirmation/add': onTool,
  '_cleveragents/plan/guard/confirmation/remove': onTool,
  '_cleveragents/budget/show': [
    { refuses: ({ session }) => ({ level: 'session', session_id: session }), kind: 'not_found' },
    { refuses: ({ planId }) => ({ level: 'plan', plan_id: planId }), kind: 'not_found' },
    { refuses: ({ profile }) => ({ level: 'profile', profile }), kind: 'not_found' },
    { lists: () => ({ level: 'org' }), shows: () => null },
  ],
  '_cleveragents/budget/set': [
    { refuses: ({ session }) => ({ level: 'session', session_id: session, total_usd: 1 }), kind: 'not_found' },
    { makes: () => ({ level: 'org', total_usd: 1 }) },
  ],
  '_cleveragents/plan/retire': { refuses: ({ planId }) => ({ plan_id: planId, reason: 'Stop' }), kind: 'not_found' },
  '_cleveragents/halt/set': { refuses: ({ planId }) => ({ level: 'plan', plan_id: planId, reason: 'Stop' }), kind: 'not_found' },
  '_cleveragents/halt/clear': { refuses: ({ planId }) => ({ level: 'plan', plan_id: planId }), kind: 'not_found' },
  '_cleveragents/halt/show': { refuses: ({ planId }) => ({ level: 'plan', plan_id: planId }), kind: 'not_found' },
  '_cleveragents/plan/profile/show': onPlan,
  '_cleveragents/guard/configure': [
    { makes: ({ planId }) => ({ plan_id: planId }) },
    { makes: ({ session }) => ({ plan_id: '01JZZZZZZZZZZZZZZZZZZZZZZ3', session_id: session }) },
    { refuses: ({ profile }) => ({ plan_id: NOTHING.planId, automation_profile: profile }), kind: 'invalid' },
  ],
  '_cleveragents/guard/authorize': { refuses: ({ planId }) => ({ plan_id: planId, tool_name: 'read_file' }), kind: 'not_found' },
  '_cleveragents/guard/settle': { refuses: ({ planId }) => ({ decision_id: `${planId}.c1`, outcome: 'succeeded' }), kind: 'not_found' },
  '_cleveragents/guard/complete': onPlan,
  '_cleveragents/guard/evaluate': [
    { refuses: ({ planId }) => ({ plan_id: planId, tool_name: 'read_file' }), kind: 'not_found' },
    { refuses: ({ profile }) => ({ automation_profile: profile, tool_name: 'read_file' }), kind: 'invalid' },
  ],
  '_cleveragents/guard/check_step_limit': { refuses: ({ planId }) => ({ plan_id: planId, current_step: 1 }), kind: 'not_found' },
  '_cleveragents/guard/check_tool_budget': { refuses: ({ planId }) => ({ plan_id: planId, tool_cost: 0.1 }), kind: 'not_found' },
  '_cleveragents/guard/check_wall_clock': onPlan,
  '_cleveragents/guard/check_actor_tool_calls': { refuses: ({ planId }) => ({ plan_id: planId, current_calls: 0 }), kind: 'not_found' },
  '_cleveragents/guard/check_retries_per_failure': {
    refuses: ({ planId }) => ({ plan_id: planId, current_retries: 0 }),
    kind: 'not_found',
  },
  '_cleveragents/guard/check_confirmation_required': {
    refuses: ({ planId }) => ({ plan_id: planId, operation: 'deploy' }),
    kind: 'not_found',
  },
  '_cleveragents/guard/check_budget_hierarchy': { refuses: ({ planId }) => ({ plan_id: planId, tool_cost: 0.1 }), kind: 'not_found' },
  '_cleveragents/guard/associate_plan_with_session': {
    refuses: ({ planId, session }) => ({ plan_id: planId, session_id: session }),
    kind: 'not_found',
  },
  '_cleveragents/guard/get_audit_trail': onPlan,
  '_cleveragents/guard/get_audit_trail_as_metadata': onPlan,
  '_cleveragents/guard/load_from_metadata': {
    refuses: ({ planId }) => ({ plan_id: planId, metadata: { autonomy_guardrails: { step_count: 1 } } }),
    kind: 'not_found',
  },
  '_cleveragents/approval/list': [listing('approvalId'), onPlan],
  '_cleveragents/approval/decide': { refuses: ({ approvalId }) => ({ approval_id: approvalId, decision: 'approve' }), kind: 'not_found' },
};

let service: TestService;
let owner: TestCaller;
let stranger: TestCaller;
let owned: World;
beforeEach(async () => {
  service = makeService();
  owner = await service.caller('owner');
  stranger = await service.caller('stranger');
  owned = await furnish(owner);
});

/** One of everything, in use. */
async function furnish(caller: TestCaller): Promise<World> {
  const [action, project, session, profile] = ['owned-action', 'owned-project', 'owned-session', 'owned/profile'];
  const steps = { actor: 'scripted/steps', apply: 'none', automation_profile: 'manual', execute: [{ say: 'Hello' }] };
  await caller.call('_cleveragents/action/add', { action: { name: action, description: 'Owned', public: true, ...steps } });
  await caller.call('_cleveragents/project/create', { name: project });
  await caller.call('_cleveragents/project/blob/put', { name: project, blobs: [put] });
  const changes = [{ path: 'secret.txt', entry }];
  await caller.call('_cleveragents/project/commit', { name: project, commit_id: 'first', expected_head: null, mode: 'patch', changes });
  await caller.call('_cleveragents/config/set', { key: 'core.default-action', value: action });
  await caller.call('_cleveragents/config/set', { key: 'core.automation-profile', scope: 'project', project, value: 'review' });
  await caller.call('_cleveragents/profile/add', { profile: { name: profile, extends: 'auto' } });
  // A name that stands nowhere else, so that seeing it means seeing this floor.
  await caller.call('_cleveragents/org/policy/set', { policy: { guardrails: { tool_denylist: [profile] } } });
  await caller.call('session.create', { session_id: session, actor_name: 'scripted/steps' });
  const plan = await caller.call('_cleveragents/plan/use', { action_name: action, project, session_id: session });
  const approvalId = plan.pending[0]?.approval_id ?? '';
  expect(approvalId).not.toBe('');
  return { action, project, session, profile, keyId: caller.principal.keyId, planId: plan.plan_id, approvalId };
}

/** All that an org can see of its own: whatever a stranger does, it stays as it is. */
async function view(caller: TestCaller, { action, project, session, profile, planId }: World): Promise<unknown> {
  return Promise.all([
    caller.call('_cleveragents/action/show', { name: action }),
    caller.call('_cleveragents/profile/show', { name: profile, yaml: true }),
    caller.call('_cleveragents/org/policy/show', {}),
    caller.call('_cleveragents/project/show', { name: project }),
    caller.call('_cleveragents/project/export', { name: project }),
    caller.call('_cleveragents/config/list', {}),
    caller.call('_cleveragents/config/list', { scope: 'project', project }),
    caller.call('session.list', {}),
    caller.call('session.show', { session_id: session }),
    caller.call('_cleveragents/key/list', {}),
    caller.call('_cleveragents/plan/status', { plan_id: planId }),
    caller.call('_cleveragents/plan/guard/show', { plan_id: planId }),
    caller.call('_cleveragents/halt/show', { level: 'plan', plan_id: planId }),
    caller.call('_cleveragents/budget/show', { level: 'org' }),
    caller.call('_cleveragents/budget/show', { level: 'session', session_id: session }),
    caller.call('_cleveragents/plan/list', {}),
  ]);
}

/** A refusal with one world's names written as another's. */
function renamed(refusal: Refusal, from: World, to: World): unknown {
  let text = JSON.stringify(refusal);
  // Longest first: an approval's id begins with its plan's.
  const members = (Object.keys(from) as (keyof World)[]).sort((a, b) => from[b].length - from[a].length);
  for (const member of members) text = text.replaceAll(from[member], to[member]);
  return JSON.parse(text);
}

const CASES = OPERATION_NAMES.flatMap((name) => {
  const walls = WALLS[name];
  return (Array.isArray(walls) ? (walls as readonly Wall[]) : [walls as Wall]).map((wall, index) => ({ name, wall, index }));
});

describe('another org', () => {
  it.each(CASES)('learns and changes nothing by $name ($index)', async ({ name, wall }) => {
    const before = await view(owner, owned);
    if ('refuses' in wall) {
      const foreign = await stranger.refused(name, wall.refuses(owned) as never);
      expect(foreign.kind).toBe(wall.kind);
      const unknown = await stranger.refused(name, wall.refuses(NOTHING) as never);
      expect(renamed(foreign, owned, NOTHING)).toEqual(unknown);
    } else if ('lists' in wall) {
      const theirs = JSON.stringify(await stranger.call(name, wall.lists(owned) as never));
      for (const text of Object.values(owned)) expect(theirs).not.toContain(text);
      const shown = wall.shows(owned);
      if (shown !== null) expect(JSON.stringify(await owner.call(name, wall.lists(owned) as never))).toContain(shown);
    } else {
      await stranger.call(name, wall.makes(owned) as never);
    }
    expect(await view(owner, owned)).toEqual(before);
  });

  it('cannot use a project, or go on with a page, of this one although it has the same names', async () => {
    await owner.call('_cleveragents/project/blob/put', { name: owned.project, blobs: [blobOf('b').put] });
    const changes = [{ path: 'b', entry: blobOf('b').entry }];
    const commit = { name: owned.project, commit_id: 'second', expected_head: null, mode: 'patch', changes } as const;
    await owner.call('_cleveragents/project/commit', commit);
    const { next_page_token: token } = await owner.call('_cleveragents/project/export', { name: owned.project, page_size: 1 });
    expect(token).not.toBe('');

    await stranger.call('_cleveragents/project/create', { name: owned.project });
    const params = { name: owned.project, page_token: token };
    expect(await stranger.refused('_cleveragents/project/export', params)).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'page_token' }],
    });
    // Blobs are kept by project: a digest that another org holds is still missing here.
    expect(await stranger.call('_cleveragents/project/blob/missing', { name: owned.project, digests: [put.digest] })).toEqual({
      missing: [put.digest],
    });
    expect((await stranger.call('_cleveragents/project/export', { name: owned.project })).files).toEqual([]);
  });

  it('does not use the org that stands in no parameter: the caller is all that counts', async () => {
    const refusal = await stranger.refused('_cleveragents/project/show', { name: owned.project, org: 'owner' } as never);
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'org', message: 'unknown field' }] });
  });
});
