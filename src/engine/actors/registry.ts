import type { Actor } from './actor.ts';
import { scriptedCommands } from './scripted-commands.ts';
import { scriptedSteps } from './scripted-steps.ts';

/** The actor of that name, or null: a closed list, so that a name from outside selects and never loads anything. */
export function findActor(name: string): Actor | null {
  return ACTORS.get(name) ?? null;
}

const ACTORS: ReadonlyMap<string, Actor> = new Map([scriptedSteps, scriptedCommands].map((actor) => [actor.name, actor]));

/** Names for messages: what an action can have as its actor. */
export const ACTOR_NAMES: readonly string[] = [...ACTORS.keys()];
