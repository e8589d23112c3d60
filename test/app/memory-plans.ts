/** Plans without objects: commands are decided by the core and kept in memory. Nothing drives them on, so a plan stays where it is. */
import type { AuditStore, PlanIndex, PlanPort, Plans } from '../../src/app/ports.ts';
import type { AuditKeys } from '../../src/core/audit/ed25519.ts';
import { type SignedHead, signHead } from '../../src/core/audit/head.ts';
import type { Sha256 } from '../../src/core/digest.ts';
import { auditEntryOf } from '../../src/core/plan/audit.ts';
import { genesisHash, verifyChain } from '../../src/core/plan/chain.ts';
import { checkpointsOf } from '../../src/core/plan/checkpoint.ts';
import type { Command } from '../../src/core/plan/commands.ts';
import { decide } from '../../src/core/plan/decide.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import { keyedIn } from '../../src/core/plan/external/keys.ts';
import { type Plan, pendingApprovals } from '../../src/core/plan/plan.ts';
import { type PlanSnapshot, snapshotOf } from '../../src/core/plan/snapshot.ts';
import { taskStateOf } from '../../src/core/plan/task-state.ts';
import { NO_LIMIT_ABOVE } from '../../src/core/plan/work.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { ok, type Result } from '../../src/core/result.ts';
import type { ToolCatalogue } from '../../src/core/tool.ts';

interface Parts {
  readonly index: PlanIndex;
  readonly audit: AuditStore;
  readonly auditKeys: AuditKeys;
  readonly sha256: Sha256;
  readonly catalogue: ToolCatalogue;
  readonly nowMs: () => number;
}

export function makeMemoryPlans({ index, audit, auditKeys, sha256, catalogue, nowMs }: Parts): Plans {
  const plans = new Map<string, Plan>();
  const blobs = new Map<string, Uint8Array>();
  const logs = new Map<string, LogRow[]>();
  const heads = new Map<string, SignedHead[]>();
  const load = (digest: string) => JSON.parse(new TextDecoder().decode(blobs.get(digest)));

  const commit = async (key: string, command: Command) => {
    const decided = decide(plans.get(key) ?? null, command, {
      now: new Date(nowMs()).toISOString(),
      sha256,
      catalogue,
      money: NO_LIMIT_ABOVE,
      ...(command.type === 'authorize' && command.request.idempotencyKey !== null
        ? { keyed: keyedIn(logs.get(key) ?? [], command.request.idempotencyKey, nowMs()) }
        : {}),
    });
    const { plan } = decided;
    if (plan === null) throw new Error('no plan came of it');
    for (const [digest, bytes] of decided.blobs) blobs.set(digest, bytes);
    plans.set(key, plan);
    logs.set(key, [...(logs.get(key) ?? []), ...decided.rows]);
    await audit.append(
      decided.rows.flatMap((each) => {
        const entry = auditEntryOf(each);
        if (entry === null) return [];
        const { timestamp: at, actor, ...rest } = entry;
        return [{ ...rest, org: plan.org, planId: plan.id, at, actorKind: actor.kind, actorId: actor.id }];
      }),
    );
    const row = await index.get(plan.org, plan.id);
    if (row !== null) {
      const { phase, state, seq } = plan;
      await index.upsert({ ...row, phase, state, seq, taskState: taskStateOf(plan), pendingApprovals: pendingApprovals(plan).length });
    }
    return { ...decided, plan };
  };

  const run = async (key: string, command: Command): Promise<Result<PlanSnapshot, Refusal>> => {
    const { result, plan } = await commit(key, command);
    return result.ok ? ok(snapshotOf(plan, load)) : result;
  };

  return {
    plan(org, planId): PlanPort {
      const key = JSON.stringify([org, planId]);
      const current = () => plans.get(key) ?? null;
      return {
        create: (command) => run(key, command),
        command: async (command) => (current() === null ? null : run(key, command)),
        external: async (command) => {
          if (current() === null) return null;
          const { result, answer } = await commit(key, command);
          return result.ok ? ok(answer as never) : result;
        },
        value: async (digest) => (blobs.has(digest) ? load(digest) : null),
        read: async () => {
          const plan = current();
          return plan === null ? null : snapshotOf(plan, load);
        },
        log: async (afterSeq, limit) =>
          logs
            .get(key)
            ?.filter(({ seq }) => seq > afterSeq)
            .slice(0, limit) ?? null,
        diff: async () => null,
        checkpoints: async () => {
          const plan = current();
          return plan === null ? null : checkpointsOf(plan);
        },
        verify: async () => (current() === null ? null : verifyChain(sha256, genesisHash(sha256, org, planId), logs.get(key) ?? [])),
        heads: async ({ sign, after = 0 }) => {
          const plan = current();
          if (plan === null) return null;
          const signed = heads.get(key) ?? [];
          heads.set(key, signed);
          if (sign && signed.at(-1)?.seq !== plan.seq) {
            const claim = { v: 1, org, plan_id: planId, seq: plan.seq, hash: plan.headHash, at: new Date(nowMs()).toISOString() } as const;
            const head = await signHead(auditKeys, claim);
            if (head !== null) signed.push(head);
          }
          return { seq: plan.seq, hash: plan.headHash, signed: signed.filter(({ seq }) => seq > after), damage: null };
        },
        retire: async () => null,
        setPush: async () => null,
        pushes: async () => (current() === null ? null : []),
        deletePush: async () => null,
        retryPush: async () => null,
        wake: async () => {},
        follow: async () => null,
      };
    },
  };
}
