/** The decision tree as the service shows it: what was decided, by what confidence, under one root. */
import { expect, it } from 'vitest';
import { findOperation } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { addAction, isTerminal, newOrg, services, start, until } from './plan-support.ts';

it('holds the root and each decision with its question, its choice, its confidence and the threshold that it met', async () => {
  const person = await newOrg();
  const decide = (question: string, chosen: string) => ({
    decide: { type: 'strategy_choice', question, chosen, alternatives: ['Anew'], rationale: 'Less to read' },
  });
  const actionName = await addAction(person, {
    name: 'tree',
    apply: 'none',
    strategize: [decide('How?', 'In place'), decide('When?', 'Now')],
    execute: [{ say: 'done' }],
  });
  const { plan } = await start(person, { actionName, automationProfile: 'auto' });
  await until(person, plan.id, isTerminal);
  const found = findOperation('_cleveragents/plan/tree');
  if (found === null) throw new Error('there is no such operation');
  const tree = await dispatchOperation(found, { plan_id: plan.id }, { principal: person, idempotencyKey: null }, services);
  if (!tree.ok) throw new Error(tree.error.message);
  const root = `${plan.id}.d1`;
  expect(tree.value).toMatchObject({
    plan_id: plan.id,
    root,
    decisions: [
      { decision_id: root, parent_id: null, type: 'prompt_definition', superseded: false },
      {
        parent_id: root,
        type: 'strategy_choice',
        question: 'How?',
        chosen: 'In place',
        alternatives: ['Anew'],
        rationale: 'Less to read',
        threshold: 0,
        superseded: false,
        attempt: 1,
      },
      { parent_id: `${plan.id}.d2`, question: 'When?', chosen: 'Now', confidence: expect.any(Number), components: expect.any(Object) },
    ],
  });
});
