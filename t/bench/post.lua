-- SPDX-License-Identifier: ISC
-- Makes wrk send POST requests with the JSON body in BENCH_BODY.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")
wrk.headers["Content-Type"] = "application/json"
