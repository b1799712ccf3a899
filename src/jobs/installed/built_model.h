#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/json.h"
#include "jobs/installed/ask_python.h"
#include "workload/model.h"

// A model as the user's own transformers builds it: on PyTorch's meta device, where weights have shapes and no contents
// (build_model.py). No weights are read, and nothing is fetched.
namespace krigtune::jobs {

/// Weights of one shape that have one name but for its numbers.
struct BuiltWeights {
  std::string name;                 ///< "model.layers.*.mlp.up_proj.weight": * stands for numbers
  std::vector<std::int64_t> shape;  ///< of one of them
  std::string module;               ///< the class that they are used in: "Linear"
  bool is_trained = true;
  std::string tied_to;               ///< the weight that these are another name of; "": none
  std::int64_t count = 1;            ///< how many there are
  std::vector<std::int64_t> blocks;  ///< the first numbers of their names, ascending: the blocks that have them

  std::int64_t elements() const;  ///< of all of them; 0 if they are tied to others
  /// Returns whether they belong to experts, of which a token uses a part.
  bool are_of_experts() const;
};

/// The model, perhaps with adapters.
struct BuiltModel {
  std::vector<std::pair<std::string, std::string>> packages;  ///< what built it: {"transformers", "5.24.0"}
  std::string class_name;                                     ///< "LlamaForCausalLM"
  std::int64_t parameters = 0;                                ///< without adapters; tied weights count once
  std::vector<BuiltWeights> weights;                          ///< those of adapters too

  std::int64_t trained() const;  ///< elements of all weights that are trained
  /// Returns the parameters that a token uses, of a model with these experts; without adapters. Empty if the model has
  /// experts and `experts` does not say how many of them a token is sent to.
  std::optional<std::int64_t> active(const workload::ExpertSpec& experts) const;
};

/// What is to be built, and by whom.
struct ModelToBuild {
  std::filesystem::path config;   ///< config.json
  std::filesystem::path adapter;  ///< PEFT's adapter_config.json; "": no adapters
  std::string python;             ///< as PythonQuestion has it
  std::string option = "--python";
  double timeout_s = kAskTimeoutS;
};

/// Builds the model. Throws UserError, with one line, like ask_python, if that Python lacks transformers, torch or
/// peft, and if these cannot build the model.
BuiltModel build_model(const ModelToBuild& model, const Clock& clock);
/// The same, but empty if that Python lacks one of them.
std::optional<BuiltModel> build_model_if_installed(const ModelToBuild& model, const Clock& clock);

/// Reads the answer of build_model.py. `source` names it in errors.
BuiltModel built_model_from(const Json& json, const std::string& source);

/// Returns the weights as a list, as --json prints them.
Json to_json(const std::vector<BuiltWeights>& weights);

/// Gives `model`, as it was read from the same config.json, exactly `parameters`: what it lacks is added to the
/// parameters that no other key describes, and what it has too many is taken from these. Returns the parameters that
/// it still has too many, which should be 0.
std::int64_t correct_parameters(workload::ModelSpec& model, std::int64_t parameters);

}  // namespace krigtune::jobs
