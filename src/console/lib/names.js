// SPDX-License-Identifier: ISC
/** The names of projects and users, which other objects mention by id. */
import { all } from './api.js';
import { t } from '../texts.js';

const AGE_MS = 10000;

/** @type {Map<number, string>} */
let projects = new Map();
/** @type {Map<number, string>} */
let users = new Map();
let loaded = -AGE_MS;

/** Fetches the names. */
export async function load() {
	loaded = performance.now();
	const [projectList, userList] = await Promise.all([all('/projects'), all('/user/list')]);
	projects = new Map(projectList.map(({ id, name }) => [id, name]));
	users = new Map(userList.map(({ id, name, username }) => [id, name ?? username]));
}

/**
 * @param {Map<number, string>} names
 * @param {number} id
 */
function nameIn(names, id) {
	const name = names.get(id);
	// It may be new; the next drawing shows its name.
	if (name === undefined && performance.now() - loaded > AGE_MS)
		load().catch(() => {});
	return name;
}

/** @param {number} id */
export function projectName(id) {
	return nameIn(projects, id) ?? t.names.project(id);
}

/**
 * @param {number | null} id null: the service itself
 */
export function userName(id) {
	return id === null ? t.names.service : nameIn(users, id) ?? t.names.user(id);
}
