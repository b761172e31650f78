// SPDX-License-Identifier: ISC
/** The head that all pages of one project share. */
import { el } from './dom.js';
import { lockNotice, unlock } from './lock.js';
import { href } from './router.js';
import { may } from './session.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').Project} Project */
/** @typedef {import('./page.js').Context} Context */

/**
 * @param {string} path
 * @param {string} label
 */
function tab(path, label) {
	return el('a', { href: href(path), 'aria-current': isWithin(path) ? 'page' : null }, label);
}

/**
 * Whether the page that is shown is the one of a tab, or belongs to it.
 * @param {string} path
 */
function isWithin(path) {
	const now = location.pathname;
	return now === href(path) || (path.endsWith('/pipelines') && /\/pipelines\/(new|\d+)$/.test(now));
}

/**
 * What a project without a pipeline needs first.
 * @param {Pick<Project, 'id' | 'role'>} project
 */
export function needsPipeline({ id, role }) {
	return el('div', { class: 'empty' }, el('p', null, t.project.needsPipeline), may({ role }, 'maintainer')
		&& el('a', { class: 'button primary', href: href(`/projects/${id}/pipelines/new`) }, t.pipelines.add));
}

/**
 * @param {Pick<Project, 'id' | 'name' | 'lock'>} project
 * @param {Context} context
 * @param {string} [title] of the page; default: the project's name
 */
export function projectHead(project, context, title) {
	const base = `/projects/${project.id}`;
	return [
		el('div', { class: 'project-head' },
			el('div', { class: 'head' },
				el('div', { class: 'title' },
					title !== undefined && el('a', { class: 'up', href: href(base) }, project.name),
					el('h1', { tabindex: -1 }, title ?? project.name)),
				may(context.who, 'deployer') && !location.pathname.endsWith('/deploy')
					&& el('a', { class: 'button primary', href: href(`${base}/deploy`) }, t.board.deploy)),
			el('nav', { class: 'tabs', 'aria-label': t.project.pages },
				tab(base, t.project.overview), tab(`${base}/pipelines`, t.project.pipelines),
				tab(`${base}/environments`, t.project.environments),
				tab(`${base}/schedules`, t.project.schedules),
				may(context.who, 'maintainer') && tab(`${base}/notifiers`, t.project.notifiers),
				tab(`${base}/members`, t.project.members),
				tab(`${base}/settings`, t.project.settings))),
		lockNotice(project.lock, may(context.who, 'maintainer')
			? () => context.run(() => unlock(`${base}/lock`)) : undefined),
	];
}
