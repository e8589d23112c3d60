/** The product with the agent that the public conformance suites talk to. */
import { compose } from '../../src/compose.ts';
import type { Tool } from '../../src/engine/tools/tool.ts';
import { conformanceActor } from './conformance-actor.ts';

/** Takes its time, as work does that somebody follows. */
const HOLD: Tool = {
  spec: {
    name: 'conformance/hold',
    aliases: [],
    summary: 'Takes so many milliseconds',
    riskClass: 'external_read',
    parameters: {
      type: 'object',
      properties: { ms: { type: 'integer', minimum: 0, maximum: 60_000 } },
      required: ['ms'],
      additionalProperties: false,
    },
    priceMicroUsd: 0,
    scope: 'external',
    idempotent: true,
    skillCategory: 'conformance',
  },
  async perform({ ms }, { signal }) {
    await new Promise<void>((done, stopped) => {
      const timer = setTimeout(done, Number(ms));
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        stopped(signal.reason);
      });
    });
    return { status: 'succeeded', result: null };
  },
};

const parts = compose({ toolPackages: [{ name: 'conformance', tools: [HOLD] }], actors: [conformanceActor] });

export class PlanObject extends parts.PlanObject {}
export class SessionObject extends parts.SessionObject {}
export class OrgObject extends parts.OrgObject {}
export class ProfileBudgetObject extends parts.ProfileBudgetObject {}
export { ProjectObject } from '../../src/objects/project-object.ts';

export default parts.worker;
