// SPDX-License-Identifier: ISC
/** Projects, environments and users, which other objects mention by id. */
import { all } from './api.js';
import { may } from './session.js';
import { inOrder } from './text.js';
import { t } from '../texts.js';

const AGE_MS = 10000;

/** @type {Map<number, import('./types.js').ProjectSummary>} */
let projects = new Map();
/** @type {Map<number, import('./types.js').User>} */
let users = new Map();
/** @type {Map<number, import('./types.js').Environment>} */
let environments = new Map();
let loaded = -AGE_MS;

/** Fetches the names. */
export async function load() {
	loaded = performance.now();
	const [projectList, userList, environmentList] = await Promise.all([all('/projects'), all('/user/list'),
		all('/environments')]);
	projects = new Map(projectList.map((one) => [one.id, one]));
	environments = new Map(environmentList.map((one) => [one.id, one]));
	users = new Map(userList.map((one) => [one.id, one]));
}

/**
 * @template T
 * @param {Map<number, T>} known
 * @param {number} id
 */
function find(known, id) {
	const found = known.get(id);
	// It may be new; the next drawing shows it.
	if (found === undefined && performance.now() - loaded > AGE_MS)
		load().catch(() => {});
	return found;
}

/** @param {number} id */
export function projectName(id) {
	return find(projects, id)?.name ?? t.names.project(id);
}

/**
 * The user's role in a project; the lowest one if it is unknown or deleted.
 * @param {number} id
 */
export function projectRole(id) {
	return find(projects, id)?.role ?? 'guest';
}

/**
 * The projects in which the user has a role, as choices of a form.
 * @param {import('./session.js').Role} role
 */
export function projectChoices(role) {
	return [...projects.values()].filter((one) => may(one, role)).map(({ id, name }) => ({ value: String(id), label: name }));
}

/**
 * @param {number | null} id null: the service itself
 */
export function userName(id) {
	const user = id === null ? undefined : find(users, id);
	return user !== undefined ? inOrder(user.name ?? user.username) : id === null ? t.names.service : t.names.user(id);
}

/**
 * The active users with a role, as choices of a form.
 * @param {import('./session.js').Role} role
 * @param {number[]} chosen users who have been chosen, whatever their role is now
 * @param {import('./types.js').Member[]} [members] of the project that the role is in
 */
export function peopleWith(role, chosen, members = []) {
	const inProject = new Set(members.filter((one) => may(one, role)).map(({ userId }) => userId));
	return [...users.values()].filter((one) => chosen.includes(one.id)
		|| (one.status === 'active' && (may(one, role) || inProject.has(one.id))))
		.map(({ id, name, username }) => ({ value: String(id), label: inOrder(name ?? username) }));
}

/**
 * The highest role that the user has anywhere.
 * @param {{ role: string }} user
 */
export function highestRole(user) {
	return [...projects.values()].reduce((most, { role }) => may({ role: most }, role) ? most : role, user.role);
}

/**
 * The environments of a project, as choices of a form.
 * @param {number} projectId
 */
export function environmentsOf(projectId) {
	return [...environments.values()].filter((one) => one.projectId === projectId)
		.map(({ id, name }) => ({ value: String(id), label: name }));
}

/**
 * An environment that a deployment mentions; undefined if it is unknown or deleted.
 * @param {number | null} id null: the deployment has none
 */
export function environmentOf(id) {
	return id === null ? undefined : find(environments, id);
}
