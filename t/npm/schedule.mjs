// SPDX-License-Identifier: ISC
// The reference for times of schedules: croner finds the times of the clock, Intl the
// time zone's offsets. Reads lines "CRON|ZONE|FROM|N" and prints the N times after
// FROM; "changes|ZONE|FROM|TO" prints when the zone's offset changes.
import { createInterface } from 'node:readline';
import { Cron } from 'croner';

const day = 86400;
const first = Date.UTC(2023, 0, 1) / 1000;
const last = Date.UTC(2070, 0, 1) / 1000;

const formats = {};
function offset(zone, time) {
	formats[zone] ||= new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23',
		year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric',
		second: 'numeric' });
	const p = {};
	for (const { type, value } of formats[zone].formatToParts(time * 1000))
		p[type] = Number(value);
	return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) / 1000 - time;
}

// Periods with one offset each, in order.
const known = {};
function periods(zone) {
	if (known[zone])
		return known[zone];
	const list = [{ start: first, offset: offset(zone, first) }];
	for (let time = first; time < last; time += day) {
		const before = list.at(-1).offset;
		if (offset(zone, time + day) === before)
			continue;
		let low = time, high = time + day;
		while (high - low > 1) {
			const middle = Math.floor((low + high) / 2);
			if (offset(zone, middle) === before)
				low = middle;
			else
				high = middle;
		}
		list.push({ start: high, offset: offset(zone, high) });
	}
	list.forEach((p, i) => { p.end = i + 1 < list.length ? list[i + 1].start : Infinity; });
	return known[zone] = list;
}

// The first moment at which the clock shows that time or a later one.
function moment(zone, clock) {
	for (const p of periods(zone)) {
		const time = Math.max(p.start, clock - p.offset);
		if (time < p.end)
			return time;
	}
	throw new Error('after all periods');
}

function times(text, zone, from, n) {
	const cron = new Cron(text, { timezone: 'UTC' });
	const out = [];
	let at = periods(zone).findLast((p) => p.start <= from);
	let clock = new Date((from + at.offset - 3 * 3600) * 1000);
	while (out.length < n) {
		clock = cron.nextRun(clock);
		const time = moment(zone, clock.getTime() / 1000);
		if (time > from && time !== out.at(-1))
			out.push(time);
	}
	return out;
}

for await (const line of createInterface({ input: process.stdin })) {
	const [text, zone, from, n] = line.split('|');
	console.log((text === 'changes'
	    ? periods(zone).map((p) => p.start).filter((t) => t > from && t < n)
	    : times(text, zone, Number(from), Number(n))).join(' '));
}
