import type { CalibrationScoreView } from '../../api/calibration.ts';
import type { ResultOf } from '../../api/operations.ts';
import { type Style, table } from './style.ts';

type Report = ResultOf<'_cleveragents/profile/calibration'>;

/** The classes that have outcomes, and below them what was expected in each band beside what happened. */
export function renderCalibration({ overall, classes }: Report, style: Style): string {
  if (overall.n === 0) return style.paint('dim', 'no outcomes yet');
  const scores = [{ class: 'all', ...overall }, ...classes].filter(({ n }) => n > 0);
  const summary = scores.map((each) => [each.class, ...sharesOf(each), numberOf(each.brier)]);
  const bands = scores.flatMap((each) => each.bands.filter(({ n }) => n > 0).map((band) => [each.class, rangeOf(band), ...sharesOf(band)]));
  return [
    table(['class', 'n', 'ok', 'happened', 'expected', 'brier'], summary, style),
    '',
    table(['class', 'confidence', 'n', 'ok', 'happened', 'expected'], bands, style),
    style.paint('dim', 'happened: share that went well; expected: mean confidence; brier: 0 is perfect, 0.25 is a coin'),
  ].join('\n');
}

type Share = Pick<CalibrationScoreView, 'n' | 'ok' | 'ok_share' | 'mean_confidence'>;

function sharesOf({ n, ok, ok_share: happened, mean_confidence: expected }: Share): readonly string[] {
  return [String(n), String(ok), numberOf(happened), numberOf(expected)];
}

function rangeOf({ from, to }: { readonly from: number; readonly to: number }): string {
  return `${from.toFixed(1)} to ${to.toFixed(1)}`;
}

function numberOf(value: number | null): string {
  return value === null ? '-' : value.toFixed(3);
}
