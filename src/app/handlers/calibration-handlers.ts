import type { CalibrationScoreView } from '../../api/calibration.ts';
import { type CalibrationScore, type CalibrationShare, calibrate } from '../../core/calibration.ts';
import { notFound, type Refusal } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import type { Services } from '../services.ts';

/** So many of the newest judged decisions make the report. */
export const CALIBRATION_WINDOW = 10_000;

export const calibrationHandlers = {
  '_cleveragents/profile/calibration': async (params, call, services) => {
    const groups = await services.outcomes.judged({ org: call.principal.org, ...params }, CALIBRATION_WINDOW);
    const { overall, classes } = calibrate(groups);
    if (overall.n === 0) {
      const unknown = await unknownName(params, call.principal.org, services);
      if (unknown !== null) return err(unknown);
    }
    return ok({
      overall: viewOf(overall),
      classes: classes.map(({ riskClass, score }) => ({ class: riskClass, ...viewOf(score) })),
      at_most: CALIBRATION_WINDOW,
    });
  },
} satisfies Pick<Handlers, '_cleveragents/profile/calibration'>;

/** A report of nothing is one of something that there is: a name that is mistyped is not answered by zeros. */
async function unknownName(
  { action, project, actor }: { readonly action?: string; readonly project?: string; readonly actor?: string },
  org: string,
  services: Services,
): Promise<Refusal | null> {
  if (action !== undefined && (await services.actions.get(org, action)) === null)
    return notFound('action', action, { action_name: action });
  if (project !== undefined && (await services.projectStore.get(org, project)) === null) return notFound('project', project, { project });
  if (actor !== undefined && !services.actors.names().includes(actor)) return notFound('actor', actor, { actor });
  return null;
}

function viewOf(score: CalibrationScore): CalibrationScoreView {
  return { ...shareOf(score), brier: score.brier, bands: score.bands.map((band) => ({ from: band.from, to: band.to, ...shareOf(band) })) };
}

function shareOf({ n, ok: went, okShare, meanConfidence }: CalibrationShare) {
  return { n, ok: went, ok_share: okShare, mean_confidence: meanConfidence };
}
