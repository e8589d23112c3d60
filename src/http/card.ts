import { buildCard, type CardSkill } from '../a2a/agent-card.ts';
import { selectCodec } from '../a2a/codec.ts';
import { OPERATION_NAMES } from '../api/operations.ts';
import type { NamedDocument } from '../app/ports.ts';
import type { Services } from '../app/services.ts';
import { conditionalJson } from './conditional.ts';
import type { ModificationTimes } from './modification-times.ts';
import { originOf } from './origin.ts';

/** Where the card is: the path of A2A since 0.3, and the older one. */
export const CARD_PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

/**
 * The public Agent Card. A client that names version 1.0 gets the pure 1.0 card, everybody else one that both versions read: the card is
 * how a client learns what to ask for, so no header makes it refuse.
 */
export async function answerCard(request: Request, services: Services, times: ModificationTimes): Promise<Response> {
  const codec = selectCodec({ versionHeader: request.headers.get('a2a-version') });
  const shape = codec.ok && codec.value.version === '1.0' ? '1.0' : 'hybrid';
  const { origin, isConfigured } = originOf(request, services.settings);
  const card = buildCard(
    {
      name: 'CleverAgents',
      description:
        'Turns requests into plans that run under automation profiles, guards and budgets, stop for human approval where they must, and leave a verifiable trail.',
      version: services.settings.version,
      provider: { organization: 'CleverAgents', url: origin },
      documentationUrl: `${origin}/`,
      baseUrl: origin,
      skills: skillsOf(services.settings.publicOrg === null ? [] : await services.actions.listPublic(services.settings.publicOrg)),
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
      extensionMethods: OPERATION_NAMES,
      auth: services.settings.authMode,
    },
    shape,
  );
  const text = JSON.stringify(card);
  const hash = services.sha256(text);
  return conditionalJson(request, {
    text,
    hash,
    modifiedAt: times.note(`${origin} ${shape}`, hash, services.clock.nowMs()),
    // Where the addresses in the card come from the request, a cache must keep one card for each host.
    vary: isConfigured ? ['A2A-Version'] : ['A2A-Version', 'Host'],
  });
}

/** One skill for each public action; where two orgs have one of the same name, the first. */
function skillsOf(actions: readonly NamedDocument[]): readonly CardSkill[] {
  const byName = new Map<string, CardSkill>();
  for (const { name, body } of actions) {
    const description = typeof body['description'] === 'string' ? body['description'] : name;
    if (!byName.has(name)) byName.set(name, { id: name, name, description, tags: ['action'] });
  }
  return [...byName.values()];
}
