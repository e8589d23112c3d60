/** Entry of the Worker: exports the Durable Object classes and answers requests. */
import { compose } from './compose.ts';

const parts = compose({ toolPackages: [] });

export { ProjectObject } from './objects/project-object.ts';
export const PlanObject = parts.PlanObject;
export const SessionObject = parts.SessionObject;
export const OrgObject = parts.OrgObject;
export const ProfileBudgetObject = parts.ProfileBudgetObject;
export default parts.worker;
