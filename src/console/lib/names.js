// SPDX-License-Identifier: ISC
/** Projects, environments and users, which other objects mention by id. */
import { all } from './api.js';
import { t } from '../texts.js';

const AGE_MS = 10000;

/** @type {Map<number, string>} */
let projects = new Map();
/** @type {Map<number, string>} */
let users = new Map();
/** @type {Map<number, import('./types.js').Environment>} */
let environments = new Map();
let loaded = -AGE_MS;

/** Fetches the names. */
export async function load() {
	loaded = performance.now();
	const [projectList, userList, environmentList] = await Promise.all([all('/projects'), all('/user/list'),
		all('/environments')]);
	projects = new Map(projectList.map(({ id, name }) => [id, name]));
	environments = new Map(environmentList.map((one) => [one.id, one]));
	users = new Map(userList.map(({ id, name, username }) => [id, name ?? username]));
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
	return find(projects, id) ?? t.names.project(id);
}

/**
 * @param {number | null} id null: the service itself
 */
export function userName(id) {
	return id === null ? t.names.service : find(users, id) ?? t.names.user(id);
}

/**
 * An environment that a deployment mentions; undefined if it is unknown or deleted.
 * @param {number | null} id null: the deployment has none
 */
export function environmentOf(id) {
	return id === null ? undefined : find(environments, id);
}
