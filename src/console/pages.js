// SPDX-License-Identifier: ISC
/** All pages; the first whose path matches an address is shown. */
import { board } from './pages/board.js';
import { deployment } from './pages/deployment.js';
import { deployments } from './pages/deployments.js';
import { signIn } from './pages/signin.js';

/** @type {import('./lib/page.js').Page[]} */
export const pages = [board, deployment, deployments, signIn];
