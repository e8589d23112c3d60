import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { approvalPart, EXTENSION_URI, parseExtensionsHeader, readApprovalAnswers, readStartPlan } from '../../src/a2a/extension.ts';
import type { Message, Part } from '../../src/a2a/model.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';

const message = (members: { metadata?: JsonObject; parts?: readonly Part[] }): Message => ({
  messageId: 'm',
  role: 'user',
  parts: [{ kind: 'text', text: 'hi' }],
  ...members,
});
const start = (value: JsonValue) => readStartPlan(message({ metadata: { [EXTENSION_URI]: value } }));
const answer = (...data: JsonValue[]) => readApprovalAnswers(message({ parts: data.map((item) => ({ kind: 'data', data: item })) }));
const fieldsOf = (result: ReturnType<typeof start> | ReturnType<typeof answer>) =>
  result.ok || result.error.kind !== 'invalid' ? [] : result.error.issues.map((issue) => issue.field);

describe('a message that starts a plan', () => {
  test('names its action and may set the rest', () => {
    const full = {
      action: 'refactor',
      arguments: { target: 'src' },
      project: 'example',
      automation_profile: 'supervised',
      guardrails: { max_cost_per_plan: 1 },
      idempotency_key: 'k',
    };
    expect(start(full)).toEqual({ ok: true, value: full });
    expect(start({ action: 'refactor' })).toEqual({ ok: true, value: { action: 'refactor' } });
  });

  test('is one without our metadata: nothing is started by it', () => {
    expect(readStartPlan(message({}))).toEqual({ ok: true, value: null });
    expect(readStartPlan(message({ metadata: { other: 1 } }))).toEqual({ ok: true, value: null });
    expect(start(null)).toEqual({ ok: true, value: null });
  });

  test.each([
    [{}, 'action'],
    [{ action: '' }, 'action'],
    [{ action: 5 }, 'action'],
    [{ action: 'a', arguments: [] }, 'arguments'],
    [{ action: 'a', project: 7 }, 'project'],
    [{ action: 'a', guardrails: 'none' }, 'guardrails'],
    [{ action: 'a', automation_profil: 'full' }, 'automation_profil'],
    [{ action: 'a', idempotency_key: 'k'.repeat(256) }, 'idempotency_key'],
  ])('with %j is refused, naming the member', (value, field) => {
    expect(fieldsOf(start(value))).toEqual([`message.metadata.${EXTENSION_URI}.${field}`]);
  });

  test('is refused when the metadata is no object or smuggles a prototype', () => {
    expect(start('refactor').ok).toBe(false);
    expect(start(JSON.parse('{"action":"a","__proto__":{"project":"p"}}')).ok).toBe(false);
  });
});

describe('a structured answer', () => {
  const approve = { approval_id: 'P.3', decision: 'approve', digest: 'd' };

  test('is every data part that names an approval', () => {
    expect(answer(approve, { other: 1 }, [1], 'text', null)).toEqual({ ok: true, value: [approve] });
    expect(readApprovalAnswers(message({}))).toEqual({ ok: true, value: [] });
  });

  test('may carry a reason, a text and a grant of one kind', () => {
    for (const grant of [{ cost_usd: 0.5 }, { calls: 1 }, { steps: 2 }, { seconds: 60 }, { retries: 1 }]) {
      expect(answer({ ...approve, reason: 'fine', grant })).toMatchObject({ ok: true });
    }
    expect(answer({ ...approve, decision: 'answer', text: 'main' })).toMatchObject({ ok: true });
  });

  test.each([
    [{ ...approve, decision: 'approved' }, 'decision'],
    [{ ...approve, decision: undefined as unknown as string }, 'decision'],
    [{ approval_id: 'P.3', decision: 'approve' }, 'digest'],
    [{ ...approve, digest: '' }, 'digest'],
    [{ ...approve, approval_id: 5 }, 'approval_id'],
    [{ ...approve, aproved: true }, 'aproved'],
    [{ ...approve, decision: 'answer' }, 'text'],
    [{ ...approve, decision: 'deny', grant: { calls: 1 } }, 'grant'],
    [{ ...approve, grant: {} }, 'grant'],
    [{ ...approve, grant: { calls: 1, steps: 1 } }, 'grant'],
    [{ ...approve, grant: { calls: 0 } }, 'grant.calls'],
    [{ ...approve, grant: { cost_usd: -1 } }, 'grant.cost_usd'],
    [{ ...approve, grant: { tokens: 1 } }, 'grant.tokens'],
  ])('%j is refused, naming the member', (data, field) => {
    expect(fieldsOf(answer(data))).toContain(`message.parts.0.data.${field}`);
  });

  test('that is malformed refuses the whole message, though another one is right', () => {
    expect(fieldsOf(answer(approve, { ...approve, digest: 1 }))).toEqual(['message.parts.1.data.digest']);
  });

  test('is never a throw, whatever the data', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom('approval_id', 'decision', 'digest', 'grant', 'text'), fc.jsonValue()),
        (a, b) => {
          expect(typeof answer(a as JsonValue, b as JsonValue).ok).toBe('boolean');
          expect(typeof start(a as JsonValue).ok).toBe('boolean');
        },
      ),
    );
  });
});

describe('a pending approval', () => {
  test('is shown as a data part without what is absent', () => {
    expect(
      approvalPart({ approval_id: 'P.3', kind: 'call', digest: 'd', call: { tool: 'write_file' }, question: undefined, threshold: 0 }),
    ).toEqual({
      kind: 'data',
      mediaType: 'application/json',
      data: { approval_id: 'P.3', kind: 'call', digest: 'd', call: { tool: 'write_file' }, threshold: 0 },
    });
  });
});

describe('the extensions header', () => {
  test.each([
    [[null], []],
    [[''], []],
    [['urn:a, urn:b'], ['urn:a', 'urn:b']],
    [
      ['urn:a,,urn:a', 'urn:b', undefined],
      ['urn:a', 'urn:b'],
    ],
  ])('%j names %j', (values, expected) => {
    expect(parseExtensionsHeader(...values)).toEqual(expected);
  });
});
