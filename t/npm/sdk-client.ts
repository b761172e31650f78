// SPDX-License-Identifier: ISC
// A client that @hey-api/openapi-ts has made: signs in by a token, deploys and
// prints the log.
// usage: sdk-client.js URL TOKEN REPOSITORY
import { client } from './sdk/client.gen';
import { createDeployment, createPipeline, createProject, getCurrentUser, getDeployment, getLog,
	listDeployments, updateProject } from './sdk/sdk.gen';
import type { Deployment, User } from './sdk/types.gen';

declare const process: { argv: string[] };

const [url, token, repository] = process.argv.slice(2);

async function main(): Promise<void> {
	client.setConfig({ baseUrl: url, auth: () => token });
	const throwOnError = true;
	const me: User = (await getCurrentUser({ throwOnError })).data;
	const project = (await createProject({ throwOnError, body: {
		name: 'made by openapi-ts', repository, defaultBranch: 'main', envPresets: [
			{ key: 'GREETING', label: 'Greeting', type: 'input', default: 'hello' }] } })).data;
	await updateProject({ throwOnError, path: { id: project.id }, body: project });
	const pipeline = (await createPipeline({ throwOnError, body: { projectId: project.id,
		name: 'Greet', steps: [{ name: 'Greet', script: `echo "$GREETING $NAME from ${me.role}"` }] } })).data;
	const made = (await createDeployment({ throwOnError, headers: { 'Idempotency-Key': 'openapi-ts' },
		body: { projectId: project.id, pipelineId: pipeline.id, envVars: { NAME: 'openapi-ts' } } })).data;
	const path = { id: made.id };
	let now: Deployment = made;
	while (now.status === 'pending' || now.status === 'running') {
		await getLog({ throwOnError, path, query: { offset: now.logSize, wait: 1 } });
		now = (await getDeployment({ throwOnError, path })).data;
	}
	const page = (await listDeployments({ throwOnError, query: { limit: 1, projectId: project.id } })).data;
	await listDeployments({ throwOnError, query: { cursor: page.pagination.next ?? undefined } });
	console.log(page.data[0].id === made.id ? now.status : 'not listed');
	console.log((await getLog({ throwOnError, path, parseAs: 'text' })).data);
}
void main();
