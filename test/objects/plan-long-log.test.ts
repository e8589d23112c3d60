/** A plan with a log of many thousand rows: verified and exported in parts, however long it is. */

import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import { verifyAuditFile } from '../../src/api/verify-audit-file.ts';
import { auditEntryOf } from '../../src/core/plan/audit.ts';
import { chainRow } from '../../src/core/plan/chain.ts';
import type { LogRow, PlanEvent } from '../../src/core/plan/events.ts';
import { evolve } from '../../src/core/plan/evolve.ts';
import { PlanStore } from '../../src/objects/plan/plan-store.ts';
import { evict, newOrg, planOf, services, sha256, stubOf } from './plan-support.ts';
import { tamperedPlan } from './tamper-support.ts';

const ROWS = 12_000;

it('is verified a part at a time, each row of it, and answers other things meanwhile', async () => {
  const person = await newOrg();
  const planId = ulid();
  const plan = tamperedPlan(person, planId);
  expect(await plan.call('_cleveragents/guard/configure')).toMatchObject({ ok: true });
  const by = { kind: 'agent', id: 'a' } as const;
  const check = (currentStep: number) =>
    planOf(person, planId).external({ type: 'check', by, request: { check: 'step_limit', currentStep } });
  await check(1);
  const first = await planOf(person, planId).log(1, 1);
  await expect.poll(async () => (await plan.verify()).trail).toBe('complete');

  // As the object would have written them one after another.
  const rows: LogRow[] = [];
  await runInDurableObject(stubOf(person, planId), (object, state) => {
    const store = new PlanStore(state.storage.sql);
    const [like] = first ?? [];
    let at = object.plan();
    if (at === null || like?.type !== 'check_recorded') throw new Error('there is no check');
    const { v: _v, seq: _seq, prev: _prev, hash: _hash, ...event } = like;
    state.storage.transactionSync(() => {
      while (at !== null && rows.length < ROWS) {
        const row = chainRow(sha256, at.headHash, at.seq + 1, event as PlanEvent) as LogRow;
        at = evolve(at, row);
        rows.push(row);
        store.append([row], new Map(), at);
      }
      store.setFlushedSeq(rows.at(-1)?.seq ?? 0);
    });
  });
  const entries = rows.flatMap((row) => {
    const entry = auditEntryOf(row);
    if (entry === null) return [];
    const { timestamp, actor, ...rest } = entry;
    return [{ org: person.org, planId, ...rest, at: timestamp, actorKind: actor.kind, actorId: actor.id }];
  });
  for (let at = 0; at < entries.length; at += 500) await services.audit.append(entries.slice(at, at + 500));
  await evict(person, planId);
  await plan.call('_cleveragents/audit/head');

  const started = performance.now();
  let answeredMs = 0;
  const verdict = plan.verify();
  const other = check(2).then(() => {
    answeredMs = performance.now() - started;
  });
  expect(await verdict).toMatchObject({ valid: true, head_signature: 'valid' });
  const verifiedMs = performance.now() - started;
  await other;
  expect(answeredMs, 'nobody waits for the whole of it').toBeLessThan(verifiedMs / 2);

  let text = '';
  for (let after = 0; ; ) {
    const page = await plan.call('_cleveragents/audit/export', { limit: 1000, ...(after === 0 ? {} : { after_seq: after }) });
    if (!page.ok) throw new Error(page.error.message);
    const { content, next_after_seq: next } = page.value as { content: string; next_after_seq?: number };
    expect(content.length).toBeLessThan(2_000_000);
    text += content;
    if (next === undefined) break;
    after = next;
  }
  const file = await verifyAuditFile(text, { sha256, jwks: { keys: services.auditKeys.publicKeys } });
  expect(file.valid).toBe(true);
  expect(file.rows).toBeGreaterThan(ROWS);

  await plan.tamper((sql) => sql.exec('UPDATE log SET body = replace(body, \'"current_step":1\', \'"current_step":7\') WHERE seq = 6001'));
  expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 6001 });
  await env.DB.prepare('DELETE FROM audit_entries WHERE plan_id = ? AND seq = 400').bind(planId).run();
  expect((await plan.verify()).findings).toEqual([
    { seq: 6001, problem: 'changed' },
    { seq: 400, problem: 'trail_missing' },
    ...((await plan.verify()).findings ?? []).slice(2),
  ]);
}, 60_000);
