/**
 * The word of a node's kill switch (design section 7) and how it travels.
 *
 * Promise: each setting and each clearing has a higher epoch than the word before it, so that whoever hears the words of a node in any
 * order, late or twice, ends with the newest one. Saying what holds already makes no new word: a repeated call may be told again.
 */
import { maskText } from './audit/mask.ts';
import type { JsonObject } from './json.ts';
import type { Caller, Command } from './plan/commands.ts';
import type { ActorRef, HaltLevel, HaltWord } from './plan/plan.ts';
import { invalidState, type Refusal } from './refusal.ts';

/** Who says it and when; `reason` null clears. */
export interface HaltChange {
  readonly reason: string | null;
  readonly by: ActorRef;
  readonly at: string;
  /** It holds already and is only to be told again: nothing is changed, also where another call has changed it meanwhile. */
  readonly again?: true;
}

/**
 * The word after a change: the same object where nothing changes. A switch that is set again keeps its first reason. A secret in the reason
 * is masked here, so that no word ever holds one, wherever it is shown.
 */
export function nextWord(known: HaltWord | null, level: HaltLevel, { reason, by, at, again }: HaltChange): HaltWord | null {
  const isSet = known !== null && known.reason !== null;
  if (again === true || isSet === (reason !== null)) return known;
  return { level, epoch: (known?.epoch ?? 0) + 1, reason: reason === null ? null : maskText(reason), by, at };
}

/**
 * What a plan is told of a word, and whose word it is: epochs of two sessions say nothing about each other. `sessionId` null: the org's. The
 * node has checked who may clear its switch.
 */
export function commandOfWord(
  { level, epoch, reason, by }: HaltWord,
  sessionId: string | null,
): Extract<Command, { readonly type: 'halt' | 'clear_halt' }> {
  const of = level === 'session' && sessionId !== null ? { sessionId } : {};
  if (reason !== null) return { type: 'halt', by, level, epoch, reason, ...of };
  const caller: Caller = { actor: by, mayApprove: true, separateRequester: false, requireDigest: false };
  return { type: 'clear_halt', by: caller, level, epoch, ...of };
}

/**
 * Which of the words of its own session and its org that a plan read it has to record: those that it has not heard. Of a switch that it never heard of as set it needs
 * no clearing.
 */
export function unheard(heard: readonly HaltWord[], read: readonly HaltWord[]): readonly HaltWord[] {
  return read.filter((word) => {
    const known = heard.find(({ level }) => level === word.level);
    return known === undefined ? word.reason !== null : word.epoch > known.epoch;
  });
}

/** The newest of the words of each level, whatever their order; the lowest level first. */
export function newestWords(words: readonly HaltWord[]): readonly HaltWord[] {
  const newest = new Map<HaltLevel, HaltWord>();
  for (const word of words) {
    const known = newest.get(word.level);
    if (known === undefined || word.epoch > known.epoch) newest.set(word.level, word);
  }
  return [...newest.values()];
}

/** Why nothing is begun under a word that is set. */
export function haltRefusal({ level, reason, epoch }: HaltWord, context: JsonObject): Refusal {
  return invalidState(`the ${level} is halted: ${reason}. Clear the halt first; what is under way then goes on where it stands.`, {
    ...context,
    halted: { level, reason, epoch },
  });
}
