/** Entry of the Worker under test: the product with the test tools. */
import { compose } from '../../src/compose.ts';
import { TEST_TOOL_PACKAGE } from './test-tools.ts';

const parts = compose({ toolPackages: [TEST_TOOL_PACKAGE] });

export { ProjectObject } from '../../src/objects/project-object.ts';
export const PlanObject = parts.PlanObject;
export const connect = parts.connect;
export default parts.worker;
