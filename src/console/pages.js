// SPDX-License-Identifier: ISC
/** All pages; the first whose path matches an address is shown. */
import { account } from './pages/account.js';
import { audit } from './pages/audit.js';
import { board } from './pages/board.js';
import { deploy } from './pages/deploy.js';
import { deployment } from './pages/deployment.js';
import { deployments } from './pages/deployments.js';
import { device } from './pages/device.js';
import { environments } from './pages/environments.js';
import { importProject } from './pages/import.js';
import { members } from './pages/members.js';
import { notifiers, projectNotifiers } from './pages/notifiers.js';
import { pipeline } from './pages/pipeline.js';
import { newPipeline, pipelines } from './pages/pipelines.js';
import { project } from './pages/project.js';
import { newProject, projects } from './pages/projects.js';
import { runners } from './pages/runners.js';
import { schedules } from './pages/schedules.js';
import { settings } from './pages/settings.js';
import { signIn } from './pages/signin.js';
import { users } from './pages/users.js';
import { variables } from './pages/variables.js';

/** @type {import('./lib/page.js').Page[]} */
export const pages = [board, projects, newProject, importProject, project, deploy, pipelines, newPipeline, pipeline,
	environments, schedules, projectNotifiers, members, settings, deployments, deployment, account, device, users, variables,
	runners, notifiers, audit, signIn];
