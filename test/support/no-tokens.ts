import { createHash } from 'node:crypto';
import { type IdentityTokens, makeIdentityTokens } from '../../src/app/identity-tokens.ts';

/** A deployment without an identity provider. */
export const noTokens: IdentityTokens = makeIdentityTokens(
  { issuer: undefined, audience: undefined, jwksUrl: undefined },
  {
    keysAt: () => () => {
      throw new Error('nobody asks');
    },
    sha256: (data) => createHash('sha256').update(data).digest('hex'),
  },
);
