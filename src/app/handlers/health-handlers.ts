import { openRpcDocument } from '../../api/openrpc.ts';
import type { ResultOf } from '../../api/operations.ts';
import { ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import type { Services } from '../services.ts';

type Check = ResultOf<'_cleveragents/health/check'>['checks'][number];

/** No key and no project has it, so the checks find nothing; asking stores nothing either. */
const NOBODY = '-health-check-';

/** What is said of the service itself, to anybody. */
export const healthHandlers = {
  /** Makes a round trip to each kind of store and signs a text; `degraded` when something of that failed. */
  '_cleveragents/health/check': async (_params, _call, services) => {
    const checks = await Promise.all([
      check('registry', services, () => services.keys.find(NOBODY)),
      check('objects', services, () => services.projects.project(NOBODY, NOBODY).head()),
      signingCheck(services),
      ...settingChecks(services),
    ]);
    return ok({
      status: checks.every(({ status }) => status === 'ok') ? 'ok' : 'degraded',
      version: services.settings.version,
      checks,
    });
  },

  'rpc.discover': async (_params, _call, { settings }) => {
    const document = openRpcDocument({
      version: settings.version,
      ...(settings.publicUrl === null ? {} : { url: `${settings.publicUrl}/a2a` }),
    });
    return ok({ ...document, openrpc: String(document['openrpc']) });
  },
} satisfies Pick<Handlers, '_cleveragents/health/check' | 'rpc.discover'>;

/** A signature of our own key over a fixed text has to fit the key that we publish. What is to be done is said to anybody: it tells no secret. */
async function signingCheck(services: Services): Promise<Check> {
  const { auditKeys } = services;
  const name = 'audit_signing';
  if (auditKeys.problem !== null) return { name, status: 'failed', latency_ms: 0, detail: auditKeys.problem };
  const text = 'cleveragents health check';
  const checked = await check(name, services, async () => {
    const signature = await auditKeys.sign(text);
    if (signature === null || (await auditKeys.verify(text, signature)) !== 'valid') throw new Error('the signature does not fit');
  });
  return checked.status === 'ok'
    ? checked
    : { ...checked, detail: 'AUDIT_SIGNING_KEY does not sign: its members x and d are not of one key' };
}

/** What the deployment may have and need not: there, and wrong, is a failure; not there is said where it is a loss. */
function settingChecks({ cardSigner, tokens }: Services): readonly Check[] {
  const of = (name: string, problem: string | null, note?: string): Check => {
    const detail = problem ?? note;
    return { name, status: problem === null ? 'ok' : 'failed', latency_ms: 0, ...(detail === undefined ? {} : { detail }) };
  };
  const unsigned = cardSigner.publicKeys.length === 0 ? UNSIGNED_CARD : undefined;
  const hasIssuer = tokens.openIdConnectUrl !== null || tokens.problem !== null;
  return [of('card_signing', cardSigner.problem, unsigned), ...(hasIssuer ? [of('identity_provider', tokens.problem)] : [])];
}

const UNSIGNED_CARD =
  'the Agent Card is not signed; set the secret CARD_SIGNING_KEY to an Ed25519 private key as JWK (wrangler secret put CARD_SIGNING_KEY)';

/** Any failure counts, whatever it is: a check that breaks must not break the report. Its cause is nothing for the public. */
async function check(name: string, { clock }: Services, ask: () => Promise<unknown>): Promise<Check> {
  const startedMs = clock.nowMs();
  try {
    await ask();
    return { name, status: 'ok', latency_ms: clock.nowMs() - startedMs };
  } catch {
    return { name, status: 'failed', latency_ms: clock.nowMs() - startedMs, detail: 'did not answer' };
  }
}
