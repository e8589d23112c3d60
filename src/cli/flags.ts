import * as z from 'zod';
import type { Operation } from '../api/operation.ts';

/**
 * The flags of a command, made from the parameters of its row: `page_size` becomes `--page-size <number>`. Members of a nested
 * object become flags of their own (`guardrails.max_steps` → `--max-steps`); an object with free members is given as JSON.
 */
export interface Flag {
  /** Without the dashes. */
  readonly name: string;
  /** Where the value goes in the parameters. */
  readonly path: readonly string[];
  readonly kind: FlagKind;
  readonly choices: readonly string[] | null;
  readonly required: boolean;
  readonly description: string;
}

export type FlagKind = 'text' | 'number' | 'boolean' | 'list' | 'json' | 'any' | 'pairs';

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly description?: string;
  readonly default?: unknown;
}

/** All flags of an operation, those that are given by position included, in the order of its parameters. */
export function flagsOf(operation: Operation): readonly Flag[] {
  const schema = z.toJSONSchema(operation.params, { io: 'input', unrepresentable: 'any' }) as unknown as Schema;
  const flags = flagsIn(schema, []);
  const aliases = Object.entries(operation.cli?.flagAliases ?? {}).flatMap(([name, path]): Flag[] => {
    const target = flags.find((flag) => flag.path.join('.') === path);
    return target === undefined ? [] : [{ ...target, name, description: `The same as --${target.name}` }];
  });
  const pairs = Object.entries(operation.cli?.pairFlags ?? {}).map(
    ([name, member]): Flag => ({
      name,
      path: [member],
      kind: 'pairs',
      choices: null,
      required: false,
      description: `One member of ${member} as name=value; may be repeated`,
    }),
  );
  return [...flags, ...aliases, ...pairs];
}

function flagsIn(schema: Schema, path: readonly string[]): readonly Flag[] {
  const isRequired = (name: string): boolean => path.length === 0 && (schema.required ?? []).includes(name);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]): readonly Flag[] => {
    const actual = withoutNull(member);
    const at = [...path, name];
    if (actual.properties !== undefined) return flagsIn(actual, at);
    const { kind, choices } = kindOf(actual);
    return [
      { name: name.replaceAll('_', '-'), path: at, kind, choices, required: isRequired(name), description: describe(member, actual) },
    ];
  });
}

/** A member that may be null is given or left out; the flag is that of its other form. */
function withoutNull(schema: Schema): Schema {
  const other = schema.anyOf?.find((form) => form.type !== 'null');
  return other === undefined ? schema : { ...other, ...(schema.description === undefined ? {} : { description: schema.description }) };
}

function kindOf(schema: Schema): { readonly kind: FlagKind; readonly choices: readonly string[] | null } {
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  const choices = schema.enum?.filter((value) => typeof value === 'string') ?? null;
  if (types.includes('string')) return { kind: 'text', choices };
  if (types.includes('number') || types.includes('integer')) return { kind: 'number', choices: null };
  if (types.includes('boolean')) return { kind: 'boolean', choices: null };
  if (types.includes('array')) {
    const items = schema.items?.enum?.filter((value) => typeof value === 'string') ?? null;
    return schema.items?.type === 'string' ? { kind: 'list', choices: items } : { kind: 'json', choices: null };
  }
  return { kind: types.includes('object') ? 'json' : 'any', choices: null };
}

function describe(member: Schema, actual: Schema): string {
  const parts = [member.description ?? actual.description ?? ''];
  if (member.default !== undefined) parts.push(`(default: ${JSON.stringify(member.default)})`);
  return parts.filter((part) => part !== '').join(' ');
}
