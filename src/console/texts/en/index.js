// SPDX-License-Identifier: ISC
/** The texts of the console in English. Those of another language have the same type. */
import { common } from './common.js';
import { deployments } from './deployments.js';
import { people } from './people.js';
import { pipelines } from './pipelines.js';
import { projects } from './projects.js';
import { service } from './service.js';

export const texts = { ...common, ...people, ...projects, ...pipelines, ...deployments, ...service };
