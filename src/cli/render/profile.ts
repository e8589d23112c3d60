import type { Style } from './style.ts';
import { oneLine, printable, table } from './style.ts';

interface Profile {
  readonly name: string;
  readonly digest: string;
  readonly unattended?: boolean;
  readonly safety?: Readonly<Record<string, unknown>>;
  readonly guard?: Readonly<Record<string, unknown>> | null;
  /** Asked for instead of the table. */
  readonly yaml?: string | undefined;
  readonly thresholds: readonly {
    readonly name: string;
    readonly value: number;
    readonly meaning: string;
    readonly is_default?: boolean | undefined;
    /** Of a plan: what its gates use. */
    readonly effective?: number | undefined;
  }[];
}

/** A profile with the meaning beside every threshold: the names alone mislead. */
export function renderProfile(profile: Profile, style: Style): string {
  if (profile.yaml !== undefined) return printable(profile.yaml).replace(/\n$/, '');
  const rows = profile.thresholds.map(({ name, value, effective, meaning, is_default: isDefault }) => [
    name,
    effective === undefined || effective === value
      ? `${value}${isDefault === true ? ' (default)' : ''}`
      : `${value}, but ${effective} binds`,
    oneLine(meaning),
  ]);
  const parts = [
    `${style.paint('bold', oneLine(profile.name))}  ${style.paint('dim', profile.digest)}`,
    table(['threshold', 'value', 'meaning'], rows, style),
    ...membersOf('safety', profile.safety, style),
    ...membersOf('guard', profile.guard, style),
    ...(profile.unattended === true ? ['Nobody answers: a question is a failure.'] : []),
  ];
  return parts.join('\n');
}

function membersOf(group: string, members: Readonly<Record<string, unknown>> | null | undefined, style: Style): readonly string[] {
  if (members === null || members === undefined) return [];
  return [
    table(
      [group, 'value'],
      Object.entries(members).map(([name, value]) => [oneLine(name), oneLine(JSON.stringify(value) ?? '')]),
      style,
    ),
  ];
}
