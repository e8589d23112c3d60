import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import type { OrgFact, OrgLogEntry, OrgLogRow } from '../../src/core/org-log/org-event.ts';
import { refusalNote } from '../../src/core/org-log/refusals.ts';
import { genesisHash, ORG_LOG_ID } from '../../src/core/plan/chain.ts';
import { objectName } from '../../src/storage/objects.ts';
import { FAULTS } from '../worker/test-worker.ts';
import { addAction, isTerminal, newOrg, services, sha256, start, until } from './plan-support.ts';

afterEach(() => FAULTS.d1.clear());

const newName = (): string => `org-${ulid().toLowerCase()}`;

const actor = { kind: 'human', id: 'key-1', name: 'Ada' } as const;

function entry(id: string, value: number): OrgLogEntry {
  const fact: OrgFact = {
    type: 'configuration_changed',
    actor,
    data: { change_id: id, operation: 'config/set', subject: { key: 'k' }, before: null, after: { value } },
  };
  return { id, fact };
}

async function rowsOf(org: string): Promise<readonly OrgLogRow[]> {
  return (await services.orgLog.page(org, { afterSeq: 0, limit: 1_000 }))?.rows ?? [];
}

/** Writes into the object's storage, as somebody with access to it could. */
function inOrg(org: string, change: (sql: SqlStorage) => void): Promise<void> {
  return runInDurableObject(env.ORGS.getByName(objectName(org, 'org', org)), (_object, state) => change(state.storage.sql));
}

describe('the log of an org in its object', () => {
  it('begins with the first row and is one chain; an org that is only asked stores nothing', async () => {
    const org = newName();
    expect(await services.orgLog.verify(org)).toBeNull();
    expect(await services.orgLog.page(org, { afterSeq: 0, limit: 10 })).toBeNull();
    expect(await services.orgLog.heads(org, { sign: true })).toBeNull();
    expect(await services.orgLog.plans(org, '', 10)).toEqual([]);
    await inOrg(org, (sql) => expect(sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'org_log%'").toArray()).toEqual([]));

    await services.orgLog.append(org, entry('a', 1));
    const [row] = await rowsOf(org);
    expect(row).toMatchObject({ v: 1, seq: 1, type: 'configuration_changed', actor, prev: genesisHash(sha256, org, ORG_LOG_ID) });
    expect(await services.orgLog.verify(org)).toMatchObject({ valid: true, entries: 1, head: row?.hash });
  });

  it('keeps order and chain when fifty rows come at the same time', async () => {
    const org = newName();
    await Promise.all(Array.from({ length: 50 }, (_, index) => services.orgLog.append(org, entry(`e${index}`, index))));
    const rows = await rowsOf(org);
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(new Set(rows.map((row) => (row.type === 'configuration_changed' ? row.data.change_id : ''))).size).toBe(50);
    expect(await services.orgLog.verify(org)).toMatchObject({ valid: true, entries: 50 });
  });

  it('records the same entry once, however often and whenever it is sent', async () => {
    const org = newName();
    await Promise.all(Array.from({ length: 20 }, () => services.orgLog.append(org, entry('same', 1))));
    await services.orgLog.append(org, entry('other', 2));
    await services.orgLog.append(org, entry('same', 1));
    expect(await rowsOf(org)).toHaveLength(2);
  });

  it('is in D1 as well, and its end is signed', async () => {
    const org = newName();
    await services.orgLog.append(org, entry('a', 1));
    await services.orgLog.append(org, entry('b', 2));
    await expect.poll(async () => (await services.orgLog.heads(org, { sign: false }))?.signed.at(-1)?.seq).toBe(2);
    const kept = await services.audit.list(org, ORG_LOG_ID, 0, 10);
    expect(kept.map(({ seq, eventType, actorId, hash }) => ({ seq, eventType, actorId, hash }))).toEqual(
      (await rowsOf(org)).map(({ seq, hash }) => ({ seq, eventType: 'configuration_changed', actorId: 'key-1', hash })),
    );
  });

  it('is recorded while D1 does not answer, and D1 catches up by the alarm', async () => {
    const org = newName();
    FAULTS.d1.add(org);
    await services.orgLog.append(org, entry('a', 1));
    expect(await rowsOf(org)).toHaveLength(1);
    expect(await services.audit.list(org, ORG_LOG_ID, 0, 10)).toEqual([]);
    FAULTS.d1.delete(org);
    await expect.poll(async () => (await services.audit.list(org, ORG_LOG_ID, 0, 10)).length, { timeout: 15_000 }).toBe(1);
  });

  it('of one org holds nothing of another', async () => {
    const [mine, theirs] = [newName(), newName()];
    await services.orgLog.append(mine, entry('a', 1));
    await services.orgLog.append(theirs, entry('a', 2));
    expect(await rowsOf(mine)).toHaveLength(1);
    expect((await rowsOf(mine))[0]?.hash).not.toBe((await rowsOf(theirs))[0]?.hash);
    // A log that was moved into another org's object is not that org's.
    const [row] = await rowsOf(theirs);
    await inOrg(mine, (sql) => sql.exec('UPDATE org_log SET body = ? WHERE seq = 1', JSON.stringify(row)));
    expect(await services.orgLog.verify(mine)).toMatchObject({ valid: false, problem: 'broken_link', seq: 1 });
  });

  it('names a row that cannot be read, and takes nothing behind it', async () => {
    const org = newName();
    await services.orgLog.append(org, entry('a', 1));
    await services.orgLog.append(org, entry('b', 2));
    await inOrg(org, (sql) => sql.exec("UPDATE org_log SET body = '{' WHERE seq = 2"));
    expect(await services.orgLog.verify(org)).toMatchObject({ valid: false, problem: 'changed', seq: 2 });
    await expect(services.orgLog.append(org, entry('c', 3))).rejects.toThrow('is damaged');
    expect(await rowsOf(org)).toHaveLength(1);
  });

  it('counts refusals: the first of a minute is a row at once, the rest of it is one row when the minute is over', async () => {
    const org = newName();
    const at = (seconds: number): string =>
      new Date(Date.now() - 120_000 + seconds * 1_000).toISOString().replace(/:\d\d\.\d+Z/, ':00.000Z');
    for (let count = 0; count < 200; count += 1) {
      services.orgLog.refused(org, refusalNote(actor, 'role_missing', count % 2 === 0 ? 'config/set' : 'key/create', null, at(0)));
    }
    await expect
      .poll(
        async () => {
          const rows = await rowsOf(org);
          return rows.reduce((sum, row) => sum + (row.type === 'access_refused' ? row.data.count : 0), 0);
        },
        { timeout: 10_000 },
      )
      .toBe(200);
    const rows = await rowsOf(org);
    expect(rows).toHaveLength(2);
    expect(rows.at(-1)).toMatchObject({
      type: 'access_refused',
      actor,
      data: { reason: 'role_missing', operations: expect.arrayContaining(['config/set', 'key/create']) },
    });
  });

  it('says of a change of which nobody told the end that it is unresolved', async () => {
    const org = newName();
    const data = { change_id: 'c1', change: 'key_created', operation: 'key/create', subject: {}, params_digest: '', before: null } as const;
    await services.orgLog.append(org, { id: 'c1.requested', fact: { type: 'change_requested', actor, data } });
    expect(await rowsOf(org)).toHaveLength(1);
    await inOrg(org, (sql) => sql.exec("UPDATE org_log_changes SET body = json_set(body, '$.at', '2020-01-01T00:00:00.000Z')"));
    expect((await rowsOf(org)).at(-1)).toMatchObject({ type: 'change_unresolved', data: { change_id: 'c1', change: 'key_created' } });
    expect(await rowsOf(org)).toHaveLength(2);
  });
});

describe('what plans report', () => {
  it('is a row when they begin and one when they end, with the position of their logs', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, { name: 'talk', apply: 'none', execute: [{ say: 'hello' }] });
    const { plan } = await start(person, { actionName, automationProfile: 'auto' });
    const ended = await until(person, plan.id, isTerminal);
    await expect.poll(async () => (await services.orgLog.plan(person.org, plan.id))?.ended).toBe(true);
    const rows = (await rowsOf(person.org)).filter((row) => row.type.startsWith('plan_'));
    const log = (await services.plans.plan(person.org, plan.id).log(0, 1_000)) ?? [];
    expect(rows.map(({ type, data }) => ({ type, data }))).toEqual([
      { type: 'plan_created', data: { plan_id: plan.id, seq: 1, hash: log[0]?.hash } },
      { type: 'plan_ended', data: { plan_id: plan.id, seq: ended.plan.seq, hash: log.at(-1)?.hash, verified: true } },
    ]);
  });

  it('is recorded before the call that made the plan answers', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, { name: 'ask', apply: 'none', execute: [{ ask: 'Go on?' }] });
    const { plan } = await start(person, { actionName, automationProfile: 'auto' });
    expect(await services.orgLog.plan(person.org, plan.id)).toMatchObject({ plan_id: plan.id, seq: 1 });
  });

  it('is a row now and then while a plan is at work, so that a cut is seen before its end', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, { name: 'ask', apply: 'none', execute: [{ ask: 'Go on?' }, { ask: 'And on?' }] });
    const { plan } = await start(person, { actionName, automationProfile: 'auto' });
    const rowsOfPlan = async () => (await rowsOf(person.org)).filter(({ type }) => type.startsWith('plan_')).map(({ type }) => type);
    expect(await rowsOfPlan()).toEqual(['plan_created']);
    // As if the last report was ten minutes ago.
    await runInDurableObject(env.PLANS.getByName(objectName(person.org, 'plan', plan.id)), (_object, state) => {
      state.storage.sql.exec('UPDATE head_report SET at_ms = at_ms - 600000');
    });
    const port = services.plans.plan(person.org, plan.id);
    await port.command({ type: 'halt', by: { kind: 'human', id: person.keyId }, level: 'plan', epoch: null, reason: 'wait' });
    await expect.poll(rowsOfPlan).toEqual(['plan_created', 'plan_head']);
    const log = (await port.log(0, 1_000)) ?? [];
    const known = await services.orgLog.plan(person.org, plan.id);
    expect(known).toMatchObject({ ended: false, hash: log.find(({ seq }) => seq === known?.seq)?.hash });
    expect(known?.seq).toBeGreaterThan(1);
  });

  it('is repeated until it has arrived, and recorded once', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, { name: 'ask', apply: 'none', execute: [{ ask: 'Go on?' }] });
    const { plan } = await start(person, { actionName, automationProfile: 'auto' });
    // As after a crash between the answer of the org's log and the move of the position.
    await runInDurableObject(env.PLANS.getByName(objectName(person.org, 'plan', plan.id)), (_object, state) => {
      state.storage.sql.exec('DELETE FROM head_report');
    });
    await services.plans.plan(person.org, plan.id).command({ type: 'cancel', by: { kind: 'human', id: person.keyId }, reason: null });
    await expect.poll(async () => (await services.orgLog.plan(person.org, plan.id))?.ended).toBe(true);
    const types = (await rowsOf(person.org)).filter((row) => row.type.startsWith('plan_')).map(({ type }) => type);
    expect(types).toEqual(['plan_created', 'plan_ended']);
  });
});
