/** Entry of the Worker under test. */
export { default, PlanObject, ProjectObject } from '../../src/worker.ts';
