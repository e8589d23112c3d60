/** Colours and safe text for a terminal. Plain output has no colours; every text of others is made harmless before it is printed. */
export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export interface Style {
  paint(colour: Colour, text: string): string;
}

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export const PLAIN: Style = { paint: (_colour, text) => text };

export const COLOURED: Style = { paint: (colour, text) => `\u001b[${CODES[colour][0]}m${text}\u001b[${CODES[colour][1]}m` };

/** https://no-color.org: any value that is not empty turns colours off. */
export function styleFor(isRich: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  return isRich && (env['NO_COLOR'] ?? '') === '' ? COLOURED : PLAIN;
}

/**
 * Text from files, tools and actors as it may be printed: control characters and characters that turn the direction of text are
 * shown as `\u{…}`, so that nothing can move the cursor or hide what a person approves. Line breaks (also CR LF) and tabs stay.
 */
export function printable(text: string): string {
  return text.replace(/\r(?!\n)|[^\P{Cc}\r\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, shownAsCode);
}

const shownAsCode = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** The same on one line. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/g, ' ').trim());

/** Shortened in the middle of nowhere: the end is replaced by `…`. */
export const clip = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);

/** Columns padded to the widest cell. Colours are painted by `paint` after padding. */
export function table(header: readonly string[], rows: readonly (readonly string[])[], style: Style): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  ');
  return [style.paint('dim', line(header)), ...rows.map(line)].join('\n');
}

/** `$0.25`, `$0.0004`: two decimals at least, as many as the amount has. */
export function usd(amount: number): string {
  const [whole = '0', decimals = ''] = amount.toFixed(6).split('.');
  return `$${whole}.${decimals.replace(/0+$/, '').padEnd(2, '0')}`;
}
