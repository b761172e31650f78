// SPDX-License-Identifier: ISC
// A client of types made by openapi-typescript, with openapi-fetch: signs in by
// a token, deploys and prints the log.
// usage: fetch-client.js URL TOKEN REPOSITORY
import createClient from 'openapi-fetch';
import type { components, paths } from './fetch/api';

declare const process: { argv: string[]; exit(status: number): never };

const [url, token, repository] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

function done<T>(answer: { data?: T; error?: components['schemas']['Problem']; response: Response }): T {
	if (answer.data === undefined) {
		console.error(answer.response.status, answer.error?.code, JSON.stringify(answer.error?.errors));
		return process.exit(1);
	}
	return answer.data;
}

async function main(): Promise<void> {
	const me: components['schemas']['User'] = done(await client.GET('/api/auth/info', {}));
	const project = done(await client.POST('/api/projects', { body: {
		name: 'made by openapi-fetch', repository, defaultBranch: 'main', envPresets: [
			{ key: 'GREETING', label: 'Greeting', type: 'input', default: 'hello' }] } }));
	const again = done(await client.PUT('/api/projects/{id}', {
		params: { path: { id: project.id } }, body: project }));
	const pipeline = done(await client.POST('/api/pipelines', { body: { projectId: again.id,
		name: 'Greet', steps: [{ name: 'Greet', script: `echo "$GREETING $NAME from ${me.role}"` }] } }));
	const made = done(await client.POST('/api/deployments', {
		params: { header: { 'Idempotency-Key': 'openapi-fetch' } },
		body: { projectId: project.id, pipelineId: pipeline.id, envVars: { NAME: 'openapi-fetch' } } }));
	let now = made;
	while (now.status === 'pending' || now.status === 'running') {
		await client.GET('/api/deployments/{id}/log', { parseAs: 'text',
			params: { path: { id: made.id }, query: { offset: now.logSize, wait: 1 } } });
		now = done(await client.GET('/api/deployments/{id}', { params: { path: { id: made.id } } }));
	}
	const page = done(await client.GET('/api/deployments', { params: { query: { limit: 1, projectId: project.id } } }));
	const cursor: string | undefined = page.pagination.next ?? undefined;
	done(await client.GET('/api/deployments', { params: { query: { cursor } } }));
	console.log(page.data[0].id === made.id ? now.status : 'not listed');
	console.log(done(await client.GET('/api/deployments/{id}/log', { parseAs: 'text',
		params: { path: { id: made.id } } })));
}
void main();
