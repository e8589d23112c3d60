/**
 * Whether confidence keeps its word: how often what was decided at some confidence went well (design section 6). Counts of nothing are
 * zero, shares of nothing are null; no number is ever made up.
 */
import { RISK_CLASSES, type RiskClass } from './tool.ts';

/** Decisions of one class at exactly the same confidence that went the same way. */
export interface JudgedGroup {
  readonly riskClass: RiskClass;
  /** 0 to 1. */
  readonly confidence: number;
  readonly ok: boolean;
  readonly count: number;
}

/** How many decisions, how many of them went well, and how sure one was of them on average; six decimals. */
export interface CalibrationShare {
  readonly n: number;
  readonly ok: number;
  readonly okShare: number | null;
  readonly meanConfidence: number | null;
}

/** Confidence from `from` up to, not including, `to`; the last band includes 1. */
export interface CalibrationBand extends CalibrationShare {
  readonly from: number;
  readonly to: number;
}

export interface CalibrationScore extends CalibrationShare {
  /** Mean of (confidence − what happened)², what happened being 1 or 0: 0 is perfect, 0.25 is what always saying one half gets. */
  readonly brier: number | null;
  /** Ten, from the lowest. */
  readonly bands: readonly CalibrationBand[];
}

export interface Calibration {
  readonly overall: CalibrationScore;
  /** One for each of the six classes. */
  readonly classes: readonly { readonly riskClass: RiskClass; readonly score: CalibrationScore }[];
}

const BANDS = 10;

export function calibrate(groups: readonly JudgedGroup[]): Calibration {
  return {
    overall: scoreOf(groups),
    classes: RISK_CLASSES.map((riskClass) => ({ riskClass, score: scoreOf(groups.filter((group) => group.riskClass === riskClass)) })),
  };
}

/** 0 to 9. What a double makes of .7 belongs to the band that begins there. */
export function bandOf(confidence: number): number {
  return Math.max(0, Math.min(BANDS - 1, Math.floor(confidence * BANDS + 1e-9)));
}

function scoreOf(groups: readonly JudgedGroup[]): CalibrationScore {
  const share = shareOf(groups);
  const squares = sum(groups, ({ confidence, ok, count }) => count * (confidence - (ok ? 1 : 0)) ** 2);
  const bands = Array.from({ length: BANDS }, (_, band) => ({
    from: band / BANDS,
    to: (band + 1) / BANDS,
    ...shareOf(groups.filter(({ confidence }) => bandOf(confidence) === band)),
  }));
  return { ...share, brier: ratio(squares, share.n), bands };
}

function shareOf(groups: readonly JudgedGroup[]): CalibrationShare {
  const n = sum(groups, ({ count }) => count);
  const ok = sum(groups, (group) => (group.ok ? group.count : 0));
  return {
    n,
    ok,
    okShare: ratio(ok, n),
    meanConfidence: ratio(
      sum(groups, ({ confidence, count }) => confidence * count),
      n,
    ),
  };
}

function sum(groups: readonly JudgedGroup[], value: (group: JudgedGroup) => number): number {
  return groups.reduce((total, group) => total + value(group), 0);
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : Number((part / whole).toFixed(6));
}
