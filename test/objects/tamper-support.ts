/** A plan that ran to its end and is then tampered with; and what the service says of it. */
import { runInDurableObject } from 'cloudflare:test';
import { ulid } from 'ulid';
import type { ResultOf } from '../../src/api/operations.ts';
import { findOperation, type OperationName } from '../../src/api/operations.ts';
import { verifyAuditFile } from '../../src/api/verify-audit-file.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { LogDamaged } from '../../src/app/ports.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { chainRow, genesisHash } from '../../src/core/plan/chain.ts';
import type { LogRow, PlanEvent } from '../../src/core/plan/events.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { err, type Result } from '../../src/core/result.ts';
import { addAction, isTerminal, logOf, newOrg, services, sha256, stubOf, until } from './plan-support.ts';

export interface TamperedPlan {
  readonly person: Principal;
  readonly planId: string;
  /** Asks about this plan; with `plan_id: null` about none. */
  call(name: OperationName, params?: JsonObject): Promise<Result<JsonObject, Refusal>>;
  verify(): Promise<ResultOf<'_cleveragents/plan/guard/audit/verify'>>;
  /** The export of the plan, verified. */
  exported(): ReturnType<typeof verifyAuditFile>;
  tamper(change: (sql: SqlStorage) => void): Promise<void>;
}

export const counting = (size: number): readonly object[] =>
  Array.from({ length: size }, (_, index) => ({ call: { tool: 'test/counter', arguments: { label: `tampered ${index}` } } }));

/** Not made by the helpers of other tests, whose checks after each test it would not pass any more. */
export async function endedPlan(steps: readonly object[], args: JsonObject = {}): Promise<TamperedPlan> {
  const person = await newOrg();
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    arguments: { type: 'object', properties: { label: { type: 'string' } } },
    execute: steps,
    apply: 'none',
  });
  const made = await startPlan(
    { actionName, arguments: args, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'auto' },
    person,
    services,
  );
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  const planId = made.value.plan.id;
  const plan = tamperedPlan(person, planId);
  await until(person, planId, isTerminal);
  // The last rows are in D1, and the end is signed.
  for (let tries = 0; ; tries += 1) {
    const { head_signature: signature, trail, signed_seq: signed } = await plan.verify();
    if (signature === 'valid' && trail === 'complete' && signed === (await logOf(person, planId)).length) return plan;
    if (tries > 300) throw new Error(`not reached: ${JSON.stringify(await plan.verify())}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function tamperedPlan(person: Principal, planId: string): TamperedPlan {
  const call: TamperedPlan['call'] = async (name, params = {}) => {
    const found = findOperation(name);
    if (found === null) throw new Error(`no operation ${name}`);
    try {
      const { plan_id: named = planId, ...rest } = params;
      const asked = named === null ? rest : { plan_id: named, ...rest };
      return await dispatchOperation(found, asked, { principal: person, idempotencyKey: null }, services);
    } catch (cause) {
      // As the edge answers it.
      if (cause instanceof LogDamaged) return err(cause.refusal);
      throw cause;
    }
  };
  const answered = async (name: OperationName, params: JsonObject = {}): Promise<JsonObject> => {
    const answer = await call(name, params);
    if (!answer.ok) throw new Error(JSON.stringify(answer.error));
    return answer.value;
  };
  return {
    person,
    planId,
    call,
    verify: async () =>
      (await answered('_cleveragents/plan/guard/audit/verify')) as unknown as ResultOf<'_cleveragents/plan/guard/audit/verify'>,
    exported: async () => {
      const { content } = await answered('_cleveragents/audit/export', { limit: 1000 });
      return verifyAuditFile(String(content), { sha256, jwks: { keys: services.auditKeys.publicKeys } });
    },
    tamper: (change) => runInDurableObject(stubOf(person, planId), (_object, state) => change(state.storage.sql)),
  };
}

export const bodyOf = (sql: SqlStorage, seq: number): string => String(sql.exec('SELECT body FROM log WHERE seq = ?', seq).one()['body']);

/** Makes the chain again, as somebody would who knows how it is made. */
export function rechain(sql: SqlStorage, of: { readonly org: string; readonly planId: string }, change: (row: LogRow) => object): void {
  let prev = genesisHash(sha256, of.org, of.planId);
  for (const { body } of sql.exec('SELECT body FROM log ORDER BY seq').toArray()) {
    const row = JSON.parse(String(body)) as LogRow;
    const { v: _v, seq, prev: _prev, hash: _hash, ...event } = { ...row, ...change(row) } as LogRow;
    const next = chainRow(sha256, prev, seq, event as PlanEvent);
    sql.exec('UPDATE log SET body = ? WHERE seq = ?', JSON.stringify(next), seq);
    prev = next.hash;
  }
}
