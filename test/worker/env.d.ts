/** What tests that run inside workerd see: the helpers of `cloudflare:test`, the bindings of wrangler.toml, and the migrations. */
/// <reference types="@cloudflare/vitest-plugin/types" />

declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import('./test-worker.ts');
  }
  interface Env {
    DB: D1Database;
    PLANS: DurableObjectNamespace<import('./test-worker.ts').PlanObject>;
    PROJECTS: DurableObjectNamespace<import('./test-worker.ts').ProjectObject>;
    SESSIONS: DurableObjectNamespace<import('./test-worker.ts').SessionObject>;
    ORGS: DurableObjectNamespace<import('./test-worker.ts').OrgObject>;
    PROFILE_BUDGETS: DurableObjectNamespace<import('./test-worker.ts').ProfileBudgetObject>;
    AUTH_MODE: string;
    TEST_MIGRATIONS: import('cloudflare:test').D1Migration[];
  }
}
