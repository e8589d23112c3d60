import type { Floors, FloorWord, HaltRef, Halts } from '../app/ports.ts';
import type { HaltChange } from '../core/halt-word.ts';
import type { HaltWord } from '../core/plan/plan.ts';
import { objectName, reachObject as reach } from './objects.ts';

/** What an object with a kill switch offers over RPC. It is told by each change who it is. */
interface HaltRpc {
  haltWord(): Promise<HaltWord | null>;
  changeHalt(name: Name, change: HaltChange): Promise<HaltWord | null>;
  haltTold(epoch: number): Promise<void>;
}

interface FloorRpc {
  floor(): Promise<FloorWord | null>;
  announceFloor(name: Name, version: number): Promise<void>;
  putFloor(floor: FloorWord): Promise<void>;
  floorTold(version: number): Promise<void>;
}

interface Name {
  readonly org: string;
  readonly id: string;
}

/** The kill switches of all sessions and orgs. Reaching one makes nothing. */
export function makeHalts(namespaces: { readonly sessions: DurableObjectNamespace; readonly orgs: DurableObjectNamespace }): Halts {
  // A stub stays broken after its object was reset, so each call takes a new one.
  const open = (org: string, of: HaltRef): HaltRpc => {
    const namespace = of.kind === 'org' ? namespaces.orgs : namespaces.sessions;
    return namespace.getByName(objectName(org, of.kind, idOf(org, of))) as unknown as HaltRpc;
  };
  const show = (org: string, of: HaltRef) => reach('halts.show', () => open(org, of).haltWord());
  return {
    show,
    change: (org, of, change) => reach('halts.change', () => open(org, of).changeHalt({ org, id: idOf(org, of) }, change)),
    told: (org, of, epoch) => reach('halts.told', () => open(org, of).haltTold(epoch)),
    async current(org, sessionId) {
      const words = await Promise.all([show(org, { kind: 'session', id: sessionId }), show(org, { kind: 'org' })]);
      return words.filter((word) => word !== null);
    },
  };
}

/** The policy floors as the orgs' objects tell them. */
export function makeFloors(orgs: DurableObjectNamespace): Floors {
  const open = (org: string): FloorRpc => orgs.getByName(objectName(org, 'org', org)) as unknown as FloorRpc;
  return {
    current: (org) => reach('floors.current', () => open(org).floor()),
    announce: (org, version) => reach('floors.announce', () => open(org).announceFloor({ org, id: org }, version)),
    put: (org, floor) => reach('floors.put', () => open(org).putFloor(floor)),
    told: (org, version) => reach('floors.told', () => open(org).floorTold(version)),
  };
}

const idOf = (org: string, of: HaltRef): string => (of.kind === 'org' ? org : of.id);
