// SPDX-License-Identifier: ISC
// Lints OpenAPI documents by the rules of redocly.yaml: prints a line of JSON for
// each, a list of its problems.
import { lint, loadConfig } from '@redocly/openapi-core';

const config = await loadConfig({ configPath: 'redocly.yaml' });
for (const ref of process.argv.slice(2)) {
	const problems = await lint({ ref, config });
	console.log(JSON.stringify(problems.map((p) =>
		`${p.severity} ${p.ruleId}: ${p.message} at ${p.location.map((l) => l.pointer)}`)));
}
