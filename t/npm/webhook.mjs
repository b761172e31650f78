// SPDX-License-Identifier: ISC
// The reference for signatures: standardwebhooks verifies requests, lines of
// {secret, headers, body} on standard input, and prints "ok" or the error.
import { readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';

for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
	const { secret, headers, body } = JSON.parse(line);
	try {
		new Webhook(secret).verify(body, headers);
		console.log('ok');
	} catch (e) {
		console.log(e.message);
	}
}
