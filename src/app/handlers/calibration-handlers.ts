import type { CalibrationScoreView } from '../../api/calibration.ts';
import { type CalibrationScore, type CalibrationShare, calibrate } from '../../core/calibration.ts';
import { ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';

/** So many of the newest judged decisions make the report. */
export const CALIBRATION_WINDOW = 10_000;

/** A name that the org does not have has no outcomes, whoever else has it. */
export const calibrationHandlers = {
  '_cleveragents/profile/calibration': async (params, call, services) => {
    const groups = await services.outcomes.judged({ org: call.principal.org, ...params }, CALIBRATION_WINDOW);
    const { overall, classes } = calibrate(groups);
    return ok({
      overall: viewOf(overall),
      classes: classes.map(({ riskClass, score }) => ({ class: riskClass, ...viewOf(score) })),
      at_most: CALIBRATION_WINDOW,
    });
  },
} satisfies Pick<Handlers, '_cleveragents/profile/calibration'>;

function viewOf(score: CalibrationScore): CalibrationScoreView {
  return { ...shareOf(score), brier: score.brier, bands: score.bands.map((band) => ({ from: band.from, to: band.to, ...shareOf(band) })) };
}

function shareOf({ n, ok: went, okShare, meanConfidence }: CalibrationShare) {
  return { n, ok: went, ok_share: okShare, mean_confidence: meanConfidence };
}
