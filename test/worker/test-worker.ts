/** Entry of the Worker under test. */
export { ProjectObject } from '../../src/objects/project-object.ts';
export { default, PlanObject } from '../../src/worker.ts';
