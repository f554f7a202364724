"""Print what a tracker holds, read from its own local files; see test_trackers.py. Run as: tracked.py wandb|mlflow."""

import json
import sys
from pathlib import Path

BLOCK, HEADER = 32768, 7  # of wandb's files: records in blocks, as LevelDB writes its log


def records(data):
    """The records of a .wandb file."""
    place, whole = HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):  # whole, or the last part
            yield whole
            whole = b""


def wandb():
    from wandb.proto.wandb_internal_pb2 import Record

    runs = {}
    for file in sorted(Path().glob("wandb/offline-run-*/run-*.wandb")):
        numbers, settings, name = {}, {}, file.stem
        for raw in records(file.read_bytes()):
            record = Record.FromString(raw)
            numbers |= {
                "/".join(one.nested_key) or one.key: json.loads(one.value_json) for one in record.summary.update
            }
            settings |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
        files = sorted(
            one.name for one in (file.parent / "files").iterdir() if one.name in ("config.toml", "result.json")
        )
        runs[name] = {"numbers": numbers, "settings": settings, "facts": settings, "files": files}
    return runs


def mlflow():
    import mlflow

    runs = {}
    for run in mlflow.search_runs(experiment_names=["prbench"], output_format="list"):
        files = sorted(one.path for one in mlflow.artifacts.list_artifacts(run_id=run.info.run_id))
        data = run.data
        runs[run.info.run_id] = {"numbers": data.metrics, "settings": data.params, "facts": data.tags, "files": files}
    return runs


print(json.dumps({"wandb": wandb, "mlflow": mlflow}[sys.argv[1]]()))
