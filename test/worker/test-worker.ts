/** Entry of the Worker under test: the product with the test tools, and a switch that takes D1 away from the plans' objects. */
import { StorageUnavailable } from '../../src/app/ports.ts';
import { compose } from '../../src/compose.ts';
import type { PlanObjectParts } from '../../src/objects/plan-object.ts';
import { TEST_TOOL_PACKAGE } from './test-tools.ts';

const parts = compose({ toolPackages: [TEST_TOOL_PACKAGE] });

/** What is broken at the moment, by org, so that tests do not disturb each other. */
export const FAULTS = { d1: new Set<string>() };

function failIfBroken(org: string, operation: string): void {
  if (FAULTS.d1.has(org)) throw new StorageUnavailable(operation, new Error('switched off by a test'));
}

export class PlanObject extends parts.PlanObject {
  protected override parts(): PlanObjectParts {
    const real = super.parts();
    return {
      ...real,
      outcomes: {
        ...real.outcomes,
        record: async (rows) => {
          for (const row of rows) failIfBroken(row.org, 'outcomes.record');
          await real.outcomes.record(rows);
        },
      },
      index: {
        ...real.index,
        upsert: async (row) => {
          failIfBroken(row.org, 'plans.upsert');
          await real.index.upsert(row);
        },
      },
      audit: {
        ...real.audit,
        append: async (rows) => {
          for (const row of rows) failIfBroken(row.org, 'audit.append');
          await real.audit.append(rows);
        },
      },
    };
  }
}

export class SessionObject extends parts.SessionObject {}
export class OrgObject extends parts.OrgObject {}
export class ProfileBudgetObject extends parts.ProfileBudgetObject {}

export { ProjectObject } from '../../src/objects/project-object.ts';
export const connect = parts.connect;
export default parts.worker;
