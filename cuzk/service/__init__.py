"""The proving service: requests in, verified proofs out, nothing lost and nothing twice.

request.py      a request: ids, limits, the digest that makes it the same one again
kinds.py        kinds of proof: their names, their readers; what is not there is refused in words
porep.py, post.py, update.py    their inputs, checked, and the keys of their circuits
keys.py         keys by circuit: loaded, kept, evicted under a budget
prover.py       the protocol of what makes partitions
pipeline.py     ours: the same run as `cuzk run`;   lane.py  one without an end for each circuit
ray_pool.py, ray_run.py    hosts of a Ray cluster, for the service and for a run
standard.py     the one that `cuzk serve` uses;               once.py  one sector without a service
journal.py      jobs and finished partitions in SQLite, inputs beside it
forecast.py     the simulator as admission control: what fits, and when it will be done
job.py          one job;                       failures.py  how it can end other than with a proof
service.py      queue, cancel, deadlines, drain; all state belongs to one event loop
runner.py       a job through its life
grpc_server.py, http_server.py    the two ways in;    sockets.py  their addresses
documents.py    jobs and status as JSON;       page.py      the status page
live.py         lanes and curves;              metrics.py   Prometheus;     timeline.py  log records as the daemon's
config.py       settings, and cuzk.toml of the daemon that this replaces
run.py          a service from its settings to its end
proto/          the messages, and the code that protoc makes of them
"""
