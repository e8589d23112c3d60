import { clip, oneLine, printable, type Style, table } from './style.ts';

/** Any result without a view of its own: a list of objects as a table below its scalars, everything else as indented names and values. */
export function renderGeneric(result: unknown, style: Style): string {
  if (!isObject(result)) return renderValue(result, '', style);
  const lists = Object.entries(result).filter(([, value]) => Array.isArray(value));
  const [list] = lists;
  const scalars = Object.entries(result).filter(([name, value]) => name !== list?.[0] && !isPaging(name) && isCell(value));
  const isOneList =
    lists.length === 1 && Object.entries(result).every(([name, value]) => name === list?.[0] || isPaging(name) || isCell(value));
  if (list === undefined || !isOneList) return renderValue(result, '', style);
  const items = list[1] as readonly unknown[];
  const above = scalars.length === 0 ? '' : `${renderValue(Object.fromEntries(scalars), '', style)}\n`;
  if (items.length === 0) return `${above}${style.paint('dim', `no ${list[0].replaceAll('_', ' ')}`)}`;
  if (!items.every(isObject)) return renderValue(result, '', style);
  return `${above}${renderTable(items, style)}${more(result, style)}`;
}

const isPaging = (name: string): boolean => ['next_page_token', 'total_size', '_meta'].includes(name);

function more(result: Readonly<Record<string, unknown>>, style: Style): string {
  const token = result['next_page_token'];
  return typeof token === 'string' && token !== '' ? `\n${style.paint('dim', `more with --page-token ${token}`)}` : '';
}

/** Columns of scalars only; the whole is in `--format json`. */
function renderTable(items: readonly Readonly<Record<string, unknown>>[], style: Style): string {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))].filter((name) => items.every((item) => isCell(item[name])));
  const rows = items.map((item) => names.map((name) => clip(cell(item[name]), 60)));
  return table(names, rows, style);
}

const isCell = (value: unknown): boolean => !isObject(value) && !(Array.isArray(value) && value.some(isObject));

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (Array.isArray(value)) return oneLine(value.map(String).join(', '));
  return oneLine(String(value));
}

function renderValue(value: unknown, indent: string, style: Style): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return `${indent}(none)`;
    return value
      .map((item) => (isObject(item) ? `${indent}-\n${renderValue(item, `${indent}  `, style)}` : `${indent}- ${cell(item)}`))
      .join('\n');
  }
  if (isObject(value)) {
    const lines = Object.entries(value).map(([name, member]) => {
      const label = `${indent}${style.paint('cyan', printable(name))}:`;
      if (isObject(member) && Object.keys(member).length > 0) return `${label}\n${renderValue(member, `${indent}  `, style)}`;
      if (Array.isArray(member) && member.length > 0 && !isCell(member)) return `${label}\n${renderValue(member, `${indent}  `, style)}`;
      if (isObject(member)) return `${label} {}`;
      if (typeof member === 'string' && member.includes('\n')) {
        return `${label}\n${printable(member)
          .split('\n')
          .map((line) => `${indent}  ${line}`)
          .join('\n')}`;
      }
      return `${label} ${cell(member)}`;
    });
    return lines.join('\n');
  }
  return `${indent}${cell(value)}`;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
