import { makeMemoryOutcomeStore } from '../../src/storage/memory/outcomes.ts';
import { makeMemoryPlanIndex } from '../../src/storage/memory/plan-index.ts';
import { makeMemoryOrgPolicyStore } from '../../src/storage/memory/profiles.ts';
import {
  makeMemoryKeyStore,
  makeMemoryNames,
  makeMemoryOrgStore,
  makeMemoryProjectStore,
  makeMemorySessionStore,
} from '../../src/storage/memory/registry.ts';
import { makeMemoryAuditStore, makeMemoryIdempotencyStore } from '../../src/storage/memory/trail.ts';
import { portSuite } from './port-suite.ts';

portSuite('memory', {
  orgs: makeMemoryOrgStore(),
  keys: makeMemoryKeyStore(),
  ...makeMemoryNames(),
  orgPolicies: makeMemoryOrgPolicyStore(),
  projects: makeMemoryProjectStore(),
  sessions: makeMemorySessionStore(),
  plans: makeMemoryPlanIndex(),
  audit: makeMemoryAuditStore(),
  idempotency: makeMemoryIdempotencyStore(),
  outcomes: makeMemoryOutcomeStore(),
});
