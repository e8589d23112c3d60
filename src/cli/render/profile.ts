import type { Style } from './style.ts';
import { oneLine, table } from './style.ts';

interface Profile {
  readonly name: string;
  readonly digest: string;
  readonly thresholds: readonly {
    readonly name: string;
    readonly value: number;
    readonly meaning: string;
    readonly is_default?: boolean | undefined;
  }[];
}

/** A profile with the meaning beside every threshold: the names alone mislead. */
export function renderProfile(profile: Profile, style: Style): string {
  const rows = profile.thresholds.map(({ name, value, meaning, is_default: isDefault }) => [
    name,
    `${value}${isDefault === true ? ' (default)' : ''}`,
    oneLine(meaning),
  ]);
  return `${style.paint('bold', oneLine(profile.name))}  ${style.paint('dim', profile.digest)}\n${table(['threshold', 'value', 'meaning'], rows, style)}`;
}
