import { GREETING } from './greeting.js';

/** A greeting for one person. */
export function greet(name) {
  return `${GREETING}, ${name}!`;
}
