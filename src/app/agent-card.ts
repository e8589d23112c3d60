/** The cards of this deployment: the public one, and the one of a caller that says what he may use. Both are signed where there is a key. */
import { buildCard, type CardInput, type CardSkill } from '../a2a/agent-card.ts';
import { signCard } from '../a2a/card-signature.ts';
import type { ProtocolVersion } from '../a2a/version.ts';
import { mayCall, type Operation } from '../api/operation.ts';
import { OPERATION_NAMES, OPERATIONS } from '../api/operations.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { hasRole, mayApprove, type Principal } from '../core/principal.ts';
import type { NamedDocument } from './ports.ts';
import { validProfileNames } from './profiles.ts';
import type { Services, Settings } from './services.ts';

/** Where the keys are that sign cards: apart from those of the audit trail, so that no key can stand in for one of another purpose. */
export const CARD_JWKS_PATH = '/.well-known/agent-card-jwks.json';

export interface CardRequest {
  /** Public origin, without a trailing slash. */
  readonly origin: string;
  readonly shape: 'hybrid' | '1.0';
}

/** The card that a client reads who speaks a version: pure where it asks for 1.0, or where nothing else is served. */
export function cardShape(version: ProtocolVersion | null, { protocolVersions }: Settings): CardRequest['shape'] {
  if (!protocolVersions.includes('0.3')) return '1.0';
  return version === '1.0' && protocolVersions.includes('1.0') ? '1.0' : 'hybrid';
}

/** What anybody may know: the actions that the deployment makes public, and every method. */
export async function publicCard(request: CardRequest, services: Services): Promise<JsonObject> {
  const { publicOrg } = services.settings;
  const skills = skillsOf(publicOrg === null ? [] : await services.actions.listPublic(publicOrg));
  return signed(request, { skills, extensionMethods: OPERATION_NAMES }, services);
}

/**
 * The card of one caller: the actions of his org and of no other, the methods that his roles and kind allow, and under which limits he
 * works. It says nothing that changes with what is spent, so that a client can keep it.
 */
export async function extendedCard(
  request: CardRequest & { readonly principal: Principal; readonly maxBodyBytes: number },
  services: Services,
): Promise<JsonObject> {
  const { principal, maxBodyBytes } = request;
  const { org, kind, roles } = principal;
  const mayStart = hasRole(roles, 'operator');
  const [actions, profiles, floor, settings] = await Promise.all([
    mayStart ? services.actions.list(org) : [],
    mayStart ? validProfileNames(org, services) : [],
    services.orgPolicies.latest(org),
    services.config.list(org, 'org'),
  ]);
  const guardrails = [...settings].flatMap(([key, value]) =>
    key.startsWith('guardrails.') && value !== null ? [[key.slice('guardrails.'.length), value] as const] : [],
  );
  const extensionParams: Record<string, JsonValue> = {
    caller: { org, kind, roles: [...roles], may_start: mayStart, may_approve: mayApprove(principal) },
    ...(profiles.length === 0 ? {} : { automation_profiles: profiles }),
    limits: {
      max_body_bytes: maxBodyBytes,
      ...(guardrails.length === 0 ? {} : { guardrails: Object.fromEntries(guardrails) }),
      ...(floor === null || Object.keys(floor.policy).length === 0 ? {} : { policy_floor: floor.policy }),
    },
  };
  const skills = mayStart ? skillsOf(actions) : [FOLLOW_SKILL];
  return signed(request, { skills, extensionMethods: methodsOf(principal), extensionParams }, services);
}

/** What is left for a caller who may start nothing. */
const FOLLOW_SKILL: CardSkill = {
  id: 'follow-plans',
  name: 'Follow plans',
  description: 'Shows tasks, their artifacts and their trails, and takes the decisions of those who may approve.',
  tags: ['plan'],
};

async function signed(
  { origin, shape }: CardRequest,
  content: Pick<CardInput, 'skills' | 'extensionMethods' | 'extensionParams'>,
  { settings, cardSigner, tokens }: Services,
): Promise<JsonObject> {
  const input: CardInput = {
    name: 'CleverAgents',
    description:
      'Turns requests into plans that run under automation profiles, guards and budgets, stop for human approval where they must, and leave a verifiable trail.',
    version: settings.version,
    provider: { organization: 'CleverAgents', url: origin },
    documentationUrl: `${origin}/`,
    baseUrl: origin,
    protocolVersions: settings.protocolVersions,
    capabilities: {
      streaming: settings.streaming,
      pushNotifications: settings.pushNotifications,
      extendedAgentCard: settings.extendedCard,
    },
    requiredExtensions: settings.requiredExtensions,
    auth: settings.authMode,
    openIdConnectUrl: tokens.openIdConnectUrl ?? undefined,
    ...content,
  };
  const pure = buildCard(input, '1.0');
  const card = shape === '1.0' ? pure : buildCard(input, 'hybrid');
  return signCard(card, pure, cardSigner, `${origin}${CARD_JWKS_PATH}`);
}

function methodsOf({ roles, kind }: Principal): readonly string[] {
  return OPERATION_NAMES.filter((name) => {
    const operation: Operation = OPERATIONS[name];
    return mayCall(operation, roles) && (operation.humanOnly !== true || kind === 'human');
  });
}

/** One skill for each action; where two orgs have one of the same name, the first. */
function skillsOf(actions: readonly NamedDocument[]): readonly CardSkill[] {
  const byName = new Map<string, CardSkill>();
  for (const { name, body } of actions) {
    const description = typeof body['description'] === 'string' ? body['description'] : name;
    if (!byName.has(name)) byName.set(name, { id: name, name, description, tags: ['action'] });
  }
  return [...byName.values()];
}
