"""Builds a Hugging Face model on PyTorch's meta device, where weights have shapes and no contents, and lists its weights.

Run by `krigtune model CONFIG --python PYTHON` with that Python:  PYTHON -c THIS REQUEST ANSWER
REQUEST is JSON: {"config": "DIR/config.json", "adapter": "DIR/adapter_config.json" or ""}. The answer is written to the
file ANSWER as JSON, because packages print what they like when they are imported:
  {"packages": {"transformers": "5.24.0", "torch": "2.15.0"}, "class": "LlamaForCausalLM", "parameters": 8030261248,
   "weights": [{"name": "model.layers.*.mlp.up_proj.weight", "shape": [14336, 4096], "module": "Linear",
                "trained": true, "tied_to": "", "count": 32, "blocks": [0, 1, ...]}]}
Weights of one name, but for its numbers, and of one shape are listed together; "blocks" are their first numbers.
"parameters" are those of the model without adapters. Without transformers the answer has no packages.
"""
import importlib.metadata
import importlib.util
import json
import os
import sys

LARGEST_ERROR = 500  # characters


def versions_of(*names):
    return {name: importlib.metadata.version(name) for name in names if importlib.util.find_spec(name)}


def model_class(config):
    """The class that trains it as a language model, or else the one that the configuration names."""
    import transformers
    from transformers import AutoModelForCausalLM

    named = [getattr(transformers, name, None) for name in getattr(config, "architectures", None) or []]
    if type(config) in AutoModelForCausalLM._model_mapping or not any(named):
        return AutoModelForCausalLM.from_config
    return next(one for one in named if one)._from_config


def build(path):
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(path, trust_remote_code=False)  # code of the model's makers is not run
    if hasattr(config, "quantization_config"):  # of the stored weights: shapes are those of the products
        del config.quantization_config
    with torch.device("meta"):
        return model_class(config)(config)


def with_adapter(model, path):
    import torch
    from peft import PEFT_TYPE_TO_CONFIG_MAPPING, get_peft_model

    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    kind = PEFT_TYPE_TO_CONFIG_MAPPING[said["peft_type"]]
    known = {name: value for name, value in said.items() if name in kind.__dataclass_fields__ and name != "peft_type"}
    known["inference_mode"] = False  # adapters that were saved are marked as frozen
    with torch.device("meta"):
        return get_peft_model(model, kind(**known))


def weights_of(model):
    groups, names = {}, {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        parts = name.split(".")
        numbers = [int(part) for part in parts if part.isdigit()]
        pattern = ".".join("*" if part.isdigit() else part for part in parts)
        tied_to = names.setdefault(id(weight), name)
        module = type(model.get_submodule(".".join(parts[:-1]))).__name__
        key = (pattern, tuple(weight.shape), module, weight.requires_grad, "" if tied_to == name else tied_to)
        group = groups.setdefault(key, {"count": 0, "blocks": set()})
        group["count"] += 1
        group["blocks"].update(numbers[:1])
    return [{"name": key[0], "shape": list(key[1]), "module": key[2], "trained": key[3], "tied_to": key[4],
             "count": group["count"], "blocks": sorted(group["blocks"])} for key, group in groups.items()]


def answer_to(request):
    packages = ["transformers", "torch"] + (["peft"] if request["adapter"] else [])
    answer = {"packages": versions_of(*packages)}
    missing = [name for name in packages if name not in answer["packages"]]
    if missing:
        return {"packages": {}, "missing": missing}
    try:
        model = build(request["config"])
        answer["class"] = type(model).__name__
        answer["parameters"] = sum(weight.numel() for weight in model.parameters())
        answer["weights"] = weights_of(with_adapter(model, request["adapter"]) if request["adapter"] else model)
    except Exception as error:  # what transformers does not know or cannot build
        answer["trouble"] = f"{type(error).__name__}: {error}"[:LARGEST_ERROR]
    return answer


def main():
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    sys.path = [path for path in sys.path if path]  # the working directory: a folder there is no package of the job
    answer = answer_to(json.loads(sys.argv[1]))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
