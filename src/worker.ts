/** Entry of the Worker: exports the Durable Object classes and answers requests. */
import { compose } from './compose.ts';

const parts = compose({ toolPackages: [] });

export { ProjectObject } from './objects/project-object.ts';
export const PlanObject = parts.PlanObject;
export default parts.worker;
