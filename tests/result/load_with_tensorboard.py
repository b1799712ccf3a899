"""Reads an exported folder with TensorBoard itself and compares it with what is expected.

usage: load_with_tensorboard.py FOLDER EXPECTED.json

EXPECTED: {"scalars": {run: {tag: [[step, value], ...]}},
           "sessions": {run: {"status": "STATUS_SUCCESS", "hparams": {...}, "metrics": {tag: value}}},
           "metrics": [tag, ...], "hparams": [name, ...]}
Scalars are read by the event accumulator, sessions by the handlers of the HParams dashboard.
"""

import json
import sys

from google.protobuf import json_format
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups


def loaded(folder):
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    return multiplexer


def scalars_of(multiplexer):
    found = {}
    for run, by_plugin in multiplexer.Runs().items():
        accumulator = multiplexer.GetAccumulator(run)
        for tag in by_plugin["tensors"]:
            if accumulator.SummaryMetadata(tag).plugin_data.plugin_name != "scalars":
                continue
            events = accumulator.Tensors(tag)
            # TensorBoard converts simple_value to tensors.
            points = [[e.step, float(e.tensor_proto.float_val[0])] for e in events]
            found.setdefault(run, {})[tag] = points
    return found


def hparams_of(multiplexer, folder):
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = context.RequestContext()
    experiment = get_experiment.Handler(request, backend, "", api_pb2.GetExperimentRequest()).run()
    asked = api_pb2.ListSessionGroupsRequest(start_index=0, slice_size=1000)
    asked.allowed_statuses.extend(api_pb2.Status.values())
    for metric in experiment.metric_infos:
        asked.col_params.add(metric=metric.name)
    groups = list_session_groups.Handler(request, backend, "", asked).run()
    sessions = {}
    for group in groups.session_groups:
        for session in group.sessions:
            sessions[session.name] = {
                "status": api_pb2.Status.Name(session.status),
                "hparams": {name: json_format.MessageToDict(value) for name, value in group.hparams.items()},
                "metrics": {value.name.tag: value.value for value in session.metric_values},
            }
    return {
        "sessions": sessions,
        "metrics": [metric.name.tag for metric in experiment.metric_infos],
        "hparams": sorted(info.name for info in experiment.hparam_infos),
    }


def main():
    folder, expected_file = sys.argv[1:3]
    with open(expected_file, encoding="utf-8") as file:
        expected = json.load(file)
    multiplexer = loaded(folder)
    seen = {"scalars": scalars_of(multiplexer), **hparams_of(multiplexer, folder)}
    wrong = [name for name in expected if seen[name] != expected[name]]
    for name in wrong:
        print(f"{name}: expected\n{json.dumps(expected[name], indent=1, sort_keys=True)}", file=sys.stderr)
        print(f"seen\n{json.dumps(seen[name], indent=1, sort_keys=True)}", file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
