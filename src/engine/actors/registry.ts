import type { Actor } from './actor.ts';
import { scriptedCommands } from './scripted-commands.ts';
import { scriptedSteps } from './scripted-steps.ts';

/** The actors of a deployment: a closed list, so that a name from outside selects and never loads anything. */
export interface ActorRegistry {
  find(name: string): Actor | null;
  /** For messages: what an action can have as its actor. */
  readonly names: readonly string[];
}

/** Those that every deployment has, and what it brings beside them. */
export function makeActorRegistry(more: readonly Actor[] = []): ActorRegistry {
  const actors = new Map([scriptedSteps, scriptedCommands, ...more].map((actor) => [actor.name, actor]));
  return { find: (name) => actors.get(name) ?? null, names: [...actors.keys()] };
}
