import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findText, splitByText } from '../../../src/core/workspace/find-text.ts';
import { MAX_SEARCH_RESULTS, mergeSearchResults, type SearchOptions, searchFiles } from '../../../src/core/workspace/search.ts';
import { encodeText } from '../../../src/core/workspace/text.ts';

const search = (files: Record<string, string | Uint8Array>, query: string, options?: SearchOptions) =>
  searchFiles(
    Object.entries(files).map(([path, content]) => ({ path, bytes: typeof content === 'string' ? encodeText(content) : content })),
    query,
    options,
  );

describe('a search', () => {
  it('gives the lines that contain the text, with their numbers, each once', () => {
    expect(search({ a: 'x\nfoo foo\r\n\nfoo', b: 'bar' }, 'foo')).toEqual({
      matches: [
        { path: 'a', line: 2, text: 'foo foo' },
        { path: 'a', line: 4, text: 'foo' },
      ],
      truncated: false,
    });
  });

  it.each(['.*', 'a%b', 'a_b', '$&', '(', '[a-z]', '\\d'])('takes %s literally', (query) => {
    expect(search({ a: `before ${query} after`, b: 'axb a1b aab abc 123' }, query).matches.map((match) => match.path)).toEqual(['a']);
  });

  it('minds the case unless told not to', () => {
    const files = { a: 'Straße ÄRGER', b: 'ärger' };
    expect(search(files, 'ärger').matches.map((match) => match.path)).toEqual(['b']);
    expect(search(files, 'Ärger', { ignoreCase: true }).matches.map((match) => match.path)).toEqual(['a', 'b']);
  });

  it('passes over binary files and files outside the glob', () => {
    const files = { 'a.ts': 'foo', 'a.md': 'foo', 'b.ts': Uint8Array.of(102, 111, 111, 0), 'c.ts': Uint8Array.of(102, 111, 111, 0xff) };
    expect(search(files, 'foo', { pathGlob: '*.ts' }).matches.map((match) => match.path)).toEqual(['a.ts']);
  });

  it('stops at its limit and says so, but not when it has exactly that many', () => {
    const files = { a: 'foo\n'.repeat(3), b: 'foo' };
    expect(search(files, 'foo', { maxResults: 3 })).toMatchObject({ matches: { length: 3 }, truncated: true });
    expect(search(files, 'foo', { maxResults: 4 })).toMatchObject({ matches: { length: 4 }, truncated: false });
    expect(search({ a: 'foo\n'.repeat(2_000) }, 'foo', { maxResults: 10_000 }).matches).toHaveLength(MAX_SEARCH_RESULTS);
  });

  it('cuts a long line around the match', () => {
    const [match] = search({ a: `${'x'.repeat(5_000)}needle${'y'.repeat(5_000)}` }, 'needle').matches;
    expect(match?.text).toMatch(/^…x+needley+…$/);
    expect(match?.text.length).toBeLessThan(500);
  });

  it('finds nothing for an empty text or one with a line break', () => {
    expect([search({ a: 'a\nb' }, ''), search({ a: 'a\nb' }, 'a\nb')].map((result) => result.matches)).toEqual([[], []]);
  });

  it('joins the results of parts in the order of paths', () => {
    const parts = [search({ b: 'foo' }, 'foo'), search({ a: 'foo\nfoo', c: 'foo' }, 'foo')];
    expect(mergeSearchResults(parts).matches.map(({ path, line }) => `${path}:${line}`)).toEqual(['a:1', 'a:2', 'b:1', 'c:1']);
    expect(mergeSearchResults(parts, { maxResults: 3 })).toMatchObject({ matches: { length: 3 }, truncated: true });
  });
});

describe('finding text', () => {
  const unit = fc.constantFrom('a', 'b', 'ab');
  const text = fc.array(unit, { maxLength: 300 }).map((units) => units.join(''));

  it('answers as the platform does, for short and long pieces', () => {
    fc.assert(
      fc.property(text, text, fc.nat(50), fc.nat(300), (all, other, from, at) => {
        for (const piece of [other, all.slice(at, at + 60), `${all.slice(at, at + 60)}a`])
          expect(findText(all, piece, from)).toBe(all.indexOf(piece, from));
      }),
    );
  });

  it('splits as the platform does', () => {
    fc.assert(
      fc.property(text, fc.nat(100), fc.integer({ min: 1, max: 60 }), (all, at, length) => {
        const piece = all.slice(at, at + length) || 'c';
        expect(splitByText(all, piece)).toEqual(all.split(piece));
      }),
    );
  });

  it('takes little time for the pieces that take the platform minutes', () => {
    const piece = `${'a'.repeat(250_000)}b${'a'.repeat(250_000)}`;
    const started = performance.now();
    expect(findText('a'.repeat(1 << 20), piece)).toBe(-1);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
