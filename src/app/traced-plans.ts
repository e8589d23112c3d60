import type { PlanPort, Plans } from './ports.ts';

/** The plans as one request reaches them: whatever it has decided there is recorded with its trace id. */
export function tracedPlans(plans: Plans, traceId: string): Plans {
  return {
    plan(org, planId) {
      const port = plans.plan(org, planId);
      const external: PlanPort['external'] = (command) => port.external({ ...command, traceId });
      return {
        ...port,
        create: (command) => port.create({ ...command, traceId }),
        command: (command) => port.command({ ...command, traceId }),
        external,
        setPush: (order) => port.setPush({ ...order, traceId }),
      };
    },
  };
}
