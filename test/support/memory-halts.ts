/** Kill switches and floors in memory, by the rules of the core; nobody tells the plans but whoever calls. */
import type { Floors, FloorWord, HaltRef, Halts } from '../../src/app/ports.ts';
import { nextWord } from '../../src/core/halt-word.ts';
import type { HaltWord } from '../../src/core/plan/plan.ts';

export function makeMemoryHalts(): Halts {
  const words = new Map<string, HaltWord>();
  const keyOf = (org: string, of: HaltRef): string => JSON.stringify([org, of]);
  const show = async (org: string, of: HaltRef) => words.get(keyOf(org, of)) ?? null;
  return {
    show,
    async change(org, of, change) {
      const word = nextWord(await show(org, of), of.kind, change);
      if (word !== null) words.set(keyOf(org, of), word);
      return word;
    },
    told: async () => {},
    async current(org, sessionId) {
      const found = await Promise.all([show(org, { kind: 'session', id: sessionId }), show(org, { kind: 'org' })]);
      return found.filter((word) => word !== null);
    },
  };
}

export function makeMemoryFloors(): Floors {
  const floors = new Map<string, FloorWord>();
  return {
    current: async (org) => floors.get(org) ?? null,
    announce: async () => {},
    put: async (org, floor) => {
      if ((floors.get(org)?.version ?? 0) < floor.version) floors.set(org, floor);
    },
    told: async () => {},
  };
}
